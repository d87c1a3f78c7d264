#include "parser.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "lexer.hpp"

namespace bulkhead::cel {
namespace {

constexpr unsigned kMaxNesting = 100;  // limit for nested brackets and prefix operators
constexpr NodeId kFailed = ~NodeId{0};

bool is_reserved(std::string_view word) {
  static constexpr std::string_view words[] = {
      "as",  "break", "const",   "continue",  "else",   "for", "function", "if",   "import",
      "let", "loop",  "package", "namespace", "return", "var", "void",     "while"};
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

// A recursive descent parser. Each parsing function returns a node, or sets fault_ and returns
// kFailed.
class Parser {
 public:
  Parser(std::string_view source, Ast *ast) : source_(source), lexer_(source), ast_(*ast) {}

  std::optional<Fault> run() {
    if (source_.size() > Ast::kMaxText) {
      return fault_at(source_, Ast::kMaxText, "the expression is longer than 64 KiB");
    }
    if (source_.find('\0') != std::string_view::npos) {
      return fault_at(source_, source_.find('\0'), "a NUL byte is not valid in CEL");
    }
    if (!advance()) return fault_;
    const NodeId root = expression();
    if (root == kFailed) return fault_;
    if (lexer_.token() != Token::kEnd) {
      expected("an operator or the end");
      return fault_;
    }
    ast_.root = root;
    return std::nullopt;
  }

 private:
  struct Nested {
    explicit Nested(unsigned *counter) : depth(counter) { ++*depth; }
    ~Nested() { --*depth; }
    Nested(const Nested &) = delete;
    Nested &operator=(const Nested &) = delete;
    unsigned *depth;
  };

  bool advance() {
    if (lexer_.next()) return true;
    if (!fault_) fault_ = lexer_.fault();
    return false;
  }
  NodeId fail(std::size_t at, std::string why) {
    if (!fault_) fault_ = fault_at(source_, at, std::move(why));
    return kFailed;
  }
  NodeId expected(std::string_view what) {
    return fail(lexer_.position(),
                "expected " + std::string(what) + ", found " + lexer_.describe());
  }
  bool take(std::string_view sign) {
    if (!lexer_.is_sign(sign)) {
      expected("'" + std::string(sign) + "'");
      return false;
    }
    return advance();
  }

  NodeId add(Node node, std::span<const NodeId> operands) {
    if (ast_.nodes.size() >= Ast::kMaxNodes) {
      return fail(node.position, "the expression has more than 16384 nodes");
    }
    node.first = static_cast<std::uint32_t>(ast_.links.size());
    node.count = static_cast<std::uint32_t>(operands.size());
    for (const NodeId operand : operands) {
      node.height = std::max(node.height, ast_.nodes[operand].height + 1);
    }
    if (node.height > Ast::kMaxHeight) {
      return fail(node.position, "the expression has more than 200 nested operations");
    }
    ast_.links.insert(ast_.links.end(), operands.begin(), operands.end());
    ast_.nodes.push_back(node);
    return static_cast<NodeId>(ast_.nodes.size() - 1);
  }
  NodeId add(Node node, std::initializer_list<NodeId> operands) {
    return add(node, std::span(operands.begin(), operands.size()));
  }
  Node node(Op op, std::size_t position) const {
    Node made;
    made.op = op;
    made.position = static_cast<std::uint32_t>(position);
    return made;
  }
  NodeId call(std::string_view name, std::size_t position, std::initializer_list<NodeId> operands) {
    Node made = node(Op::kCall, position);
    made.name = name;
    return add(made, operands);
  }
  NodeId constant(const Value &value, std::size_t position) {
    Node made = node(Op::kConstant, position);
    made.value = value;
    return add(made, std::initializer_list<NodeId>{});
  }
  // Copies a string into the tree's arena, which has room for all strings in a source of 64 KiB.
  std::string_view keep(std::string_view text) {
    auto *room = static_cast<char *>(ast_.arena.allocate(text.size()));
    if (!room) {
      fail(lexer_.position(), "the expression is too large");
      return {};
    }
    if (!text.empty()) std::memcpy(room, text.data(), text.size());
    return {room, text.size()};
  }

  NodeId expression() {
    const Nested nested(&depth_);
    if (depth_ > kMaxNesting) {
      return fail(lexer_.position(), "the expression has more than 100 nested brackets");
    }
    const NodeId condition = chain(Op::kOr, "||");
    if (condition == kFailed || !lexer_.is_sign("?")) return condition;
    const std::size_t position = lexer_.position();
    if (!advance()) return kFailed;
    const NodeId yes = chain(Op::kOr, "||");
    if (yes == kFailed || !take(":")) return kFailed;
    const NodeId no = expression();
    if (no == kFailed) return kFailed;
    return add(node(Op::kConditional, position), {condition, yes, no});
  }

  // Parses a || b || c or a && b && c into a single node, so that long chains do not cause deep
  // nesting.
  NodeId chain(Op op, std::string_view sign) {
    const auto part = [&] { return op == Op::kOr ? chain(Op::kAnd, "&&") : relation(); };
    const NodeId first = part();
    if (first == kFailed || !lexer_.is_sign(sign)) return first;
    const std::size_t position = lexer_.position();
    std::vector<NodeId> parts{first};
    while (lexer_.is_sign(sign)) {
      if (!advance()) return kFailed;
      parts.push_back(part());
      if (parts.back() == kFailed) return kFailed;
    }
    return add(node(op, position), parts);
  }

  std::optional<Op> relation_sign() const {
    static constexpr std::pair<std::string_view, Op> signs[] = {
        {"==", Op::kEqual},     {"!=", Op::kNotEqual}, {"<", Op::kLess},
        {"<=", Op::kLessEqual}, {">", Op::kGreater},   {">=", Op::kGreaterEqual}};
    if (lexer_.is_keyword("in")) return Op::kIn;
    for (const auto &[sign, op] : signs) {
      if (lexer_.is_sign(sign)) return op;
    }
    return std::nullopt;
  }

  NodeId relation() {
    NodeId left = sum();
    while (left != kFailed) {
      const auto op = relation_sign();
      if (!op) return left;
      const std::size_t position = lexer_.position();
      if (!advance()) return kFailed;
      const NodeId right = sum();
      if (right == kFailed) return kFailed;
      left = add(node(*op, position), {left, right});
    }
    return kFailed;
  }

  NodeId sum() {
    NodeId left = product();
    while (left != kFailed && (lexer_.is_sign("+") || lexer_.is_sign("-"))) {
      left = binary(left, lexer_.is_sign("+") ? "_+_" : "_-_", [&] { return product(); });
    }
    return left;
  }

  NodeId product() {
    NodeId left = unary();
    while (left != kFailed && (lexer_.is_sign("*") || lexer_.is_sign("/") || lexer_.is_sign("%"))) {
      const char *name = lexer_.is_sign("*") ? "_*_" : lexer_.is_sign("/") ? "_/_" : "_%_";
      left = binary(left, name, [&] { return unary(); });
    }
    return left;
  }

  template <class Right>
  NodeId binary(NodeId left, const char *name, Right &&parse_right) {
    const std::size_t position = lexer_.position();
    if (!advance()) return kFailed;
    const NodeId right = parse_right();
    return right == kFailed ? kFailed : call(name, position, {left, right});
  }

  NodeId unary() {
    const bool is_not = lexer_.is_sign("!");
    if (!is_not && !lexer_.is_sign("-")) return member();
    const Nested nested(&depth_);
    const std::size_t position = lexer_.position();
    if (depth_ > kMaxNesting) return fail(position, "more than 100 operators before an operand");
    if (!advance()) return kFailed;
    const bool number = lexer_.token() == Token::kInt || lexer_.token() == Token::kDouble;
    if (!is_not && number) {
      const NodeId literal = signed_number(true);
      return literal == kFailed ? kFailed : suffixes(literal);
    }
    const NodeId operand = unary();
    if (operand == kFailed) return kFailed;
    return is_not ? add(node(Op::kNot, position), {operand}) : call("-_", position, {operand});
  }

  NodeId member() {
    const NodeId operand = primary();
    return operand == kFailed ? kFailed : suffixes(operand);
  }

  NodeId suffixes(NodeId operand) {
    while (operand != kFailed) {
      const std::size_t position = lexer_.position();
      if (lexer_.is_sign("[")) {
        if (!advance()) return kFailed;
        const NodeId index = expression();
        if (index == kFailed || !take("]")) return kFailed;
        operand = add(node(Op::kIndex, position), {operand, index});
      } else if (lexer_.is_sign(".")) {
        operand = dotted(operand, position);
      } else if (lexer_.is_sign("{")) {
        return fail(position, "message construction is not supported");
      } else {
        return operand;
      }
    }
    return kFailed;
  }

  NodeId dotted(NodeId operand, std::size_t position) {
    if (!advance()) return kFailed;
    if (lexer_.token() != Token::kName) return expected("the name of a field or of a function");
    const std::size_t name_position = lexer_.position();
    const std::string_view name = lexer_.text();
    if (!advance()) return kFailed;
    if (lexer_.is_sign("(")) return arguments(name, name_position, operand);
    Node select = node(Op::kSelect, position);
    select.name = keep(name);
    return add(select, {operand});
  }

  NodeId primary() {
    const std::size_t position = lexer_.position();
    switch (lexer_.token()) {
      case Token::kInt:
      case Token::kDouble:
        return signed_number(false);
      case Token::kUint:
        return unsigned_number();
      case Token::kString:
      case Token::kBytes: {
        const std::string_view text = keep(lexer_.content());
        const bool bytes = lexer_.token() == Token::kBytes;
        if (fault_ || !advance()) return kFailed;
        return constant(bytes ? Value::bytes(text) : Value::string(text), position);
      }
      case Token::kKeyword:
        return keyword();
      case Token::kName:
        return name(false);
      default:
        break;
    }
    if (lexer_.is_sign(".")) return advance() ? name(true) : kFailed;
    if (lexer_.is_sign("[")) return list();
    if (lexer_.is_sign("{")) return map();
    if (!lexer_.is_sign("(")) return expected("a value");
    if (!advance()) return kFailed;
    const NodeId inner = expression();
    return inner != kFailed && take(")") ? inner : kFailed;
  }

  NodeId keyword() {
    const std::size_t position = lexer_.position();
    if (lexer_.is_keyword("in")) return expected("a value");
    const Value value =
        lexer_.is_keyword("null") ? Value::null() : Value::of(lexer_.is_keyword("true"));
    return advance() ? constant(value, position) : kFailed;
  }

  NodeId signed_number(bool negative) {
    const std::size_t position = lexer_.position();
    std::string text(negative ? "-" : "");
    const bool hex = lexer_.text().starts_with("0x") || lexer_.text().starts_with("0X");
    text += lexer_.text().substr(hex ? 2 : 0);
    const char *end = text.data() + text.size();
    Value value;
    if (lexer_.token() == Token::kDouble) {
      double number = 0;
      if (std::from_chars(text.data(), end, number).ec != std::errc()) {
        number = std::strtod(text.c_str(), nullptr);  // on underflow, the result is 0 or subnormal
        if (std::isinf(number)) return fail(position, "the number exceeds the range of double");
      }
      value = Value::of(number);
    } else {
      std::int64_t number = 0;
      if (std::from_chars(text.data(), end, number, hex ? 16 : 10).ec != std::errc()) {
        return fail(position, "the number exceeds the range of int (64 bits)");
      }
      value = Value::of(number);
    }
    return advance() ? constant(value, position) : kFailed;
  }

  NodeId unsigned_number() {
    const std::size_t position = lexer_.position();
    const bool hex = lexer_.text().starts_with("0x") || lexer_.text().starts_with("0X");
    const std::string_view text = lexer_.text().substr(hex ? 2 : 0);
    std::uint64_t number = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), number, hex ? 16 : 10).ec !=
        std::errc()) {
      return fail(position, "the number exceeds the range of uint (64 bits)");
    }
    return advance() ? constant(Value::of(number), position) : kFailed;
  }

  NodeId name(bool absolute) {
    if (lexer_.token() != Token::kName) return expected("a name");
    const std::size_t position = lexer_.position();
    const std::string_view word = lexer_.text();
    if (is_reserved(word)) return fail(position, "'" + std::string(word) + "' is a reserved word");
    if (!advance()) return kFailed;
    if (lexer_.is_sign("(")) return arguments(word, position, kFailed);
    Node made = node(Op::kName, position);
    made.name = keep(word);
    made.absolute = absolute;
    return add(made, std::initializer_list<NodeId>{});
  }

  NodeId list() {
    const std::size_t position = lexer_.position();
    if (!advance()) return kFailed;
    std::vector<NodeId> elements;
    if (!sequence("]", &elements, [&] { return expression(); })) return kFailed;
    return add(node(Op::kList, position), elements);
  }

  NodeId map() {
    const std::size_t position = lexer_.position();
    if (!advance()) return kFailed;
    std::vector<NodeId> entries;
    const auto entry = [&] {
      entries.push_back(expression());
      if (entries.back() == kFailed || !take(":")) return kFailed;
      return expression();
    };
    if (!sequence("}", &entries, entry)) return kFailed;
    return add(node(Op::kMap, position), entries);
  }

  // Parses elements that are separated by commas, up to and including the closing sign `end`.
  // Permits a trailing comma.
  template <class Element>
  bool sequence(std::string_view end, std::vector<NodeId> *out, Element &&element) {
    while (!lexer_.is_sign(end)) {
      const NodeId made = element();
      if (made == kFailed) return false;
      out->push_back(made);
      if (lexer_.is_sign(end)) break;
      if (!lexer_.is_sign(",")) {
        expected("',' or '" + std::string(end) + "'");
        return false;
      }
      if (!advance()) return false;
    }
    return take(end);
  }

  NodeId arguments(std::string_view name, std::size_t position, NodeId receiver) {
    if (!advance()) return kFailed;
    std::vector<NodeId> operands;
    if (receiver != kFailed) operands.push_back(receiver);
    if (!sequence(")", &operands, [&] { return expression(); })) return kFailed;
    if (receiver == kFailed && name == "has") return has(position, operands);
    if (receiver != kFailed) {
      if (const auto macro = macro_of(name, operands.size())) {
        return macro_node(*macro, position, operands);
      }
    }
    Node made = node(Op::kCall, position);
    made.name = keep(name);
    made.member = receiver != kFailed;
    return add(made, operands);
  }

  NodeId has(std::size_t position, const std::vector<NodeId> &operands) {
    if (operands.size() != 1 || ast_.nodes[operands[0]].op != Op::kSelect) {
      return fail(position, "has() takes one field, as in has(a.b)");
    }
    Node &select = ast_.nodes[operands[0]];
    select.op = Op::kHas;
    select.position = static_cast<std::uint32_t>(position);
    return operands[0];
  }

  static std::optional<Op> macro_of(std::string_view name, std::size_t operands) {
    static constexpr std::pair<std::string_view, Op> macros[] = {{"all", Op::kAll},
                                                                 {"exists", Op::kExists},
                                                                 {"exists_one", Op::kExistsOne},
                                                                 {"filter", Op::kFilter},
                                                                 {"map", Op::kTransform}};
    for (const auto &[word, op] : macros) {
      if (name != word) continue;
      if (operands == 3 || (operands == 4 && op == Op::kTransform)) return op;
    }
    return std::nullopt;
  }

  NodeId macro_node(Op op, std::size_t position, const std::vector<NodeId> &operands) {
    const Node &variable = ast_.nodes[operands[1]];
    if (variable.op != Op::kName || variable.absolute) {
      return fail(variable.position,
                  "the first argument of a macro must be the name of its variable");
    }
    Node made = node(op, position);
    made.name = variable.name;
    std::vector<NodeId> parts{operands[0]};
    parts.insert(parts.end(), operands.begin() + 2, operands.end());
    return add(made, parts);
  }

  std::string_view source_;
  Lexer lexer_;
  Ast &ast_;
  std::optional<Fault> fault_;
  unsigned depth_ = 0;
};

}  // namespace

std::optional<Fault> parse(std::string_view source, Ast *ast) {
  return Parser(source, ast).run();
}

}  // namespace bulkhead::cel
