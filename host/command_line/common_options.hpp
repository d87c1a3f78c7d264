// Options that several groups of commands have.
#pragma once

namespace CLI {
class App;
}

namespace bulkhead::program {

struct Arguments;

// --config, --project, --no-project, --plugin-dir, --log-level and --verbose.
void add_profile_options(CLI::App &app, Arguments &to);
void add_json(CLI::App &app, Arguments &to);

}  // namespace bulkhead::program
