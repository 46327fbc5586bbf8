// SPDX-License-Identifier: Apache-2.0
#include "protocol/work_request.h"

namespace rnic::protocol {

const char* wc_status_name(WcStatus status) {
  switch (status) {
    case WcStatus::kSuccess:
      return "success";
    case WcStatus::kLocalLengthError:
      return "local_length_error";
    case WcStatus::kLocalQpOperationError:
      return "local_qp_operation_error";
    case WcStatus::kLocalProtectionError:
      return "local_protection_error";
    case WcStatus::kWrFlushError:
      return "wr_flush_error";
    case WcStatus::kMwBindError:
      return "mw_bind_error";
    case WcStatus::kBadResponseError:
      return "bad_response_error";
    case WcStatus::kLocalAccessError:
      return "local_access_error";
    case WcStatus::kRemoteInvalidRequestError:
      return "remote_invalid_request_error";
    case WcStatus::kRemoteAccessError:
      return "remote_access_error";
    case WcStatus::kRemoteOperationError:
      return "remote_operation_error";
    case WcStatus::kRetryExceededError:
      return "retry_exceeded_error";
    case WcStatus::kRnrRetryExceededError:
      return "rnr_retry_exceeded_error";
    case WcStatus::kRemoteAbortedError:
      return "remote_aborted_error";
    case WcStatus::kFatalError:
      return "fatal_error";
    case WcStatus::kGeneralError:
      return "general_error";
  }
  return "unknown";
}

/// Texts of rdma-core's enum_strs.c.
const char* wc_status_str(WcStatus status) {
  switch (status) {
    case WcStatus::kSuccess:
      return "success";
    case WcStatus::kLocalLengthError:
      return "local length error";
    case WcStatus::kLocalQpOperationError:
      return "local QP operation error";
    case WcStatus::kLocalProtectionError:
      return "local protection error";
    case WcStatus::kWrFlushError:
      return "Work Request Flushed Error";
    case WcStatus::kMwBindError:
      return "memory management operation error";
    case WcStatus::kBadResponseError:
      return "bad response error";
    case WcStatus::kLocalAccessError:
      return "local access error";
    case WcStatus::kRemoteInvalidRequestError:
      return "remote invalid request error";
    case WcStatus::kRemoteAccessError:
      return "remote access error";
    case WcStatus::kRemoteOperationError:
      return "remote operation error";
    case WcStatus::kRetryExceededError:
      return "transport retry counter exceeded";
    case WcStatus::kRnrRetryExceededError:
      return "RNR retry counter exceeded";
    case WcStatus::kRemoteAbortedError:
      return "aborted error";
    case WcStatus::kFatalError:
      return "fatal error";
    case WcStatus::kGeneralError:
      return "general error";
  }
  return "unknown";
}

}  // namespace rnic::protocol
