// Recognizes server definitions that connect the gateway to itself. Such a server would list the
// gateway's own tools again, with every name longer than before.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bulkhead {

// `words` is the server's command line, or its URL. `listens` contains addresses on which the
// gateway listens, such as "127.0.0.1:8808". Returns true if
// - the command is `bulkhead`, or the words run `bulkhead` with the command `stdio`, as in
//   {"bash", "-c", "exec bulkhead stdio"}; or
// - a word contains an http or https URL with a loopback or wildcard host (localhost, 127.x.x.x,
//   [::1], 0.0.0.0, [::]) and the port of one of these addresses.
bool is_this_gateway(const std::vector<std::string_view> &words,
                     const std::vector<std::string> &listens);

}  // namespace bulkhead
