// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "protocol/address_vector.h"
#include "protocol/qp_state.h"

namespace rnic::protocol {

/// Control-path commands: the driver writes a mailbox in host memory and rings the command
/// doorbell with its bus address; the device reads it by DMA, executes it after its firmware time
/// and writes the status byte back. Layout is this model's own (no vendor publishes one).
enum class CommandOpcode : std::uint8_t {
  kCreateCq = 1,
  kCreateQp,
  kModifyQp,
  kDestroyQp,
  kInvalidateMkey,  ///< drop cached translations of a key before its pages are unpinned
  kCreateEq,
  kModifyCq,  ///< moderation
  kResizeCq,  ///< go on in another ring
  kDestroyCq,
  kCreateSrq,
  kArmSrq,  ///< set its limit
  kDestroySrq,
  kQueryQp,     ///< result: the state; the attributes as a ModifyQpCommand
  kResizeSrq,   ///< go on in another ring with more slots behind those of the old one
  kAddAddress,  ///< an address handle, for devices that ask whether there is one
  kDropAddress,
  kMigrateQp,    ///< load an alternate path, or change the state of path migration
  kQueryPort,    ///< result: its state
  kAttachMcast,  ///< a datagram queue pair joins a multicast group
  kDetachMcast,
};

/// States of a port, numbered as ibv_port_state.
enum class PortState : std::uint8_t { kDown = 1, kActive = 4 };

/// Status byte of a mailbox; the driver turns it into an errno-like result.
enum class CommandStatus : std::uint8_t {
  kPending = 0,
  kOk = 1,
  kBadParameter = 2,
  kBadResource = 3,
  kDeviceFailed = 4,  ///< nothing works any more
  kNoRoom = 5
};

struct CreateEqCommand {
  std::uint32_t eqn;  ///< also the number of its MSI-X vector
  std::uint32_t log_entries;
  std::uint64_t ring_address;
};

struct CreateCqCommand {
  std::uint32_t cqn;
  std::uint32_t log_entries;
  std::uint64_t ring_address;
  std::uint64_t doorbell_record;  ///< where the driver keeps its consumer index
  std::uint32_t eqn;              ///< of its events
  bool ignore_overrun;
};

struct ModifyCqCommand {
  std::uint32_t cqn;
  std::uint16_t event_count;      ///< an event for this many completions (0 and 1: each)
  std::uint32_t event_period_us;  ///< but no later than this after the first of them; 0: no bound
};

struct ResizeCqCommand {
  std::uint32_t cqn;
  std::uint32_t log_entries;
  std::uint64_t ring_address;
};

struct CreateSrqCommand {
  std::uint32_t srqn;
  std::uint32_t log_entries;
  std::uint64_t ring_address;
  std::uint64_t doorbell_record;
  std::uint32_t max_sge;
  std::uint32_t pd;
};

struct ArmSrqCommand {
  std::uint32_t srqn;
  std::uint32_t limit;
};

struct ResizeSrqCommand {
  std::uint32_t srqn;
  std::uint32_t log_entries;
  std::uint64_t ring_address;
};

/// A command about an object without further parameters.
struct ObjectCommand {
  std::uint32_t number;
};

struct CreateQpCommand {
  std::uint32_t qpn;
  std::uint32_t pd;
  std::uint32_t send_cqn;
  std::uint32_t recv_cqn;
  std::uint64_t sq_address;
  std::uint64_t rq_address;
  std::uint64_t doorbell_record;
  std::uint32_t sq_log_blocks;
  std::uint32_t rq_log_entries;
  std::uint32_t rq_max_sge;
  std::uint32_t srqn;  ///< 0: a receive queue of its own
  QpType type;
};

struct ModifyQpCommand {
  std::uint32_t qpn;
  std::uint32_t mask;  ///< QpAttrMask bits
  QpState state;
  QpState current;       ///< counts with QpAttrMask::kCurState: refused when the state is another
  std::uint32_t access;  ///< remote access flags of the QP
  std::uint32_t qkey;
  std::uint32_t dest_qpn;
  std::uint32_t path_mtu;  ///< bytes
  std::uint32_t rq_psn;
  std::uint32_t sq_psn;
  std::uint32_t timeout;
  std::uint32_t retry_count;
  std::uint32_t rnr_retry;
  std::uint32_t min_rnr_timer;
  std::uint32_t max_rd_atomic;
  std::uint32_t max_dest_rd_atomic;
  bool drain_event;  ///< to SQD: raise SQ_DRAINED
  AddressVector av;
};

struct MigrateQpCommand {
  std::uint32_t qpn;
  std::uint32_t mask;  ///< QpAttrMask::kAltPath, kPathMigState
  PathMigration state;
  std::uint8_t timeout;  ///< on the alternate path, as ModifyQpCommand::timeout
  AddressVector av;
};

struct AddressCommand {
  std::uint32_t pd;
  AddressVector av;
};

struct MulticastCommand {
  std::uint32_t qpn;
  Gid group;
};

struct InvalidateMkeyCommand {
  std::uint32_t key;
  std::uint32_t first_mtt;
  std::uint32_t mtt_count;
};

/// One mailbox. A trivially copyable record: its bytes are what crosses PCIe.
struct CommandMailbox {
  CommandOpcode opcode;
  CommandStatus status;
  std::uint8_t result;  ///< of a query
  std::uint8_t detail;  ///< of kQueryQp: see QueryQpDetail
  union {
    CreateCqCommand create_cq;
    CreateQpCommand create_qp;
    ModifyQpCommand modify_qp;
    InvalidateMkeyCommand invalidate_mkey;
    ObjectCommand object;  ///< destroy and query commands
    CreateEqCommand create_eq;
    ModifyCqCommand modify_cq;
    ResizeCqCommand resize_cq;
    CreateSrqCommand create_srq;
    ArmSrqCommand arm_srq;
    ResizeSrqCommand resize_srq;
    AddressCommand address;
    MigrateQpCommand migrate_qp;
    MulticastCommand multicast;
  };
};

/// The second byte of kQueryQp's result.
struct QueryQpDetail {
  static constexpr std::uint8_t kMigrationMask = 3;  ///< PathMigration
  static constexpr std::uint8_t kDraining = 4;       ///< in SQD, work is under way
};
static_assert(std::is_trivially_copyable_v<CommandMailbox>);
inline constexpr std::uint32_t kCommandStatusOffset = 1;
inline constexpr std::uint32_t kCommandResultOffset = 2;
inline constexpr std::uint32_t kCommandDetailOffset = 3;

}  // namespace rnic::protocol
