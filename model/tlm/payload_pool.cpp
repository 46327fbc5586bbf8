// SPDX-License-Identifier: Apache-2.0
#include "tlm/payload_pool.h"

namespace rnic::tlm_ext {

PooledPayload* PayloadPool::take(tlm::tlm_command command, std::uint64_t address,
                                 std::uint8_t* data, std::uint32_t bytes, Purpose purpose) {
  PooledPayload* payload = pool_.take();
  payload->set_mm(this);
  payload->set_command(command);
  payload->set_address(address);
  payload->set_data_ptr(data);
  payload->set_data_length(bytes);
  payload->set_streaming_width(bytes);
  payload->set_byte_enable_ptr(nullptr);
  payload->set_dmi_allowed(false);
  payload->set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
  payload->extension.purpose = purpose;
  payload->extension.relaxed_ordering = false;
  payload->extension.id_based_ordering = false;
  payload->extension.translated = false;
  payload->extension.is_atomic = false;
  payload->extension.fate = CompletionFate::kIntact;
  payload->extension.tags = 0;
  payload->extension.token = 0;
  payload->extension.page = nullptr;
  payload->owner = nullptr;
  payload->acquire();
  return payload;
}

void PayloadPool::free(tlm::tlm_generic_payload* payload) {
  pool_.give(static_cast<PooledPayload*>(payload));
}

}  // namespace rnic::tlm_ext
