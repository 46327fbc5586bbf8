# SPDX-License-Identifier: Apache-2.0
"""The simulator against published measurements: data set, bindings to runs, errors."""
