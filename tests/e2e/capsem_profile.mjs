// Returns a profile in the capsem format, whose profiles can extend others.
export const v2 = (id, keys, tables, tools = 'block') => `schema = "capsem.profile.v2"
version = 2
id = "${id}"
revision = "2026.0131.1"
name = "n"
description = "d"
best_for = "b"
profile_type = "coding"
ui = "coding"
${keys}
[compatibility]
min_binary = "1.0.0"
guest_abi = "capsem-guest-v1"
[vm]
[packages]
[tools]
[security.capabilities]
mcp_tools = "${tools}"
${tables}`;
