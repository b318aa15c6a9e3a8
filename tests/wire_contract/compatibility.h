#pragma once

#include <span>
#include <string_view>

#include <google/protobuf/descriptor.h>

#include "wire_contract/finding.h"

namespace simile::wire_contract {

// What makes `current` unfit to replace `released`: a client of `released` would be answered
// differently, or would no longer compile. The rules are buf's category FILE, by buf's names
// (https://buf.build/docs/breaking/rules). In it nothing that was released is ever removed, also
// not by reserving it: a server would take a field that it no longer knows for an unknown one and
// ignore it, and a query whose filter is ignored gets a wrong answer. What may be added: files,
// services, methods, messages, fields, oneofs of fields that are added, enums and values.
Findings BreakingChanges(std::span<const google::protobuf::FileDescriptor* const> released,
                         std::span<const google::protobuf::FileDescriptor* const> current);

// The names of all rules that BreakingChanges checks.
std::span<const std::string_view> BreakingRules();

}  // namespace simile::wire_contract
