# SPDX-License-Identifier: Apache-2.0
"""Sweeps, plots, comparison and speed measurements around the rnicsim program."""
