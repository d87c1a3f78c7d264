// Reads and writes JSON in plugins that do not use a JSON library. json_reader.hpp finds members in
// JSON text; json_writer.hpp appends values to a string. Header only; C++20.
#pragma once

#include "json_reader.hpp"
#include "json_writer.hpp"
