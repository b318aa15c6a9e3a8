#pragma once

#include <string>
#include <string_view>

namespace simile::wire_contract {

bool IsPascalCase(std::string_view name);      // SearchRequest
bool IsLowerSnakeCase(std::string_view name);  // exclude_ids
bool IsUpperSnakeCase(std::string_view name);  // METRIC_DOT

// "AnswerOrder" is ANSWER_ORDER; "RPCState" is RPC_STATE.
std::string UpperSnakeCaseOf(std::string_view pascal_case);

}  // namespace simile::wire_contract
