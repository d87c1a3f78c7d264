//! A reader for JSON objects, which checks the whole text, and a writer for JSON strings.

/// Arrays and objects can be nested this deeply.
const MAX_DEPTH: usize = 200;

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Text(String),
    Bool(bool),
    /// A number, null, an array or an object.
    Other,
}

/// Returns the members of a JSON object in their order, or the reason why it is invalid.
pub fn read_object(json: &[u8]) -> Result<Vec<(String, Value)>, String> {
    let text = std::str::from_utf8(json).map_err(|_| "the text is not UTF-8".to_string())?;
    let mut reader = Reader { text, at: 0 };
    reader.document().map_err(|reason| format!("{} at byte {}", reason, reader.at))
}

/// Appends the text as a JSON string.
pub fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\0'..='\x1f' => out.push_str(&format!("\\u{:04x}", c as u32)),
            _ => out.push(c),
        }
    }
    out.push('"');
}

struct Reader<'a> {
    text: &'a str,
    at: usize, // a character boundary whenever a method returns Ok
}

type Parsed<T> = Result<T, &'static str>;

impl Reader<'_> {
    fn document(&mut self) -> Parsed<Vec<(String, Value)>> {
        let mut members = Vec::new();
        self.skip_space();
        if self.peek() != Some(b'{') {
            return Err("not an object");
        }
        self.object(1, |name, value| members.push((name, value)))?;
        self.skip_space();
        if self.at != self.text.len() {
            return Err("unexpected text after the object");
        }
        Ok(members)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
    fn accept(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }
    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Parsed<Value> {
        self.skip_space();
        match self.peek() {
            Some(b'"') => return Ok(Value::Text(self.string()?)),
            Some(b'{') => self.object(depth + 1, |_, _| {})?,
            Some(b'[') => self.array(depth + 1)?,
            Some(b't') => return self.word("true", Value::Bool(true)),
            Some(b'f') => return self.word("false", Value::Bool(false)),
            Some(b'n') => return self.word("null", Value::Other),
            _ => self.number()?,
        }
        Ok(Value::Other)
    }

    fn word(&mut self, word: &str, value: Value) -> Parsed<Value> {
        if !self.text[self.at..].starts_with(word) {
            return Err("unknown value");
        }
        self.at += word.len();
        Ok(value)
    }

    fn object(&mut self, depth: usize, mut member: impl FnMut(String, Value)) -> Parsed<()> {
        self.open(depth)?;
        if self.accept(b'}') {
            return Ok(());
        }
        loop {
            self.skip_space();
            let name = self.string()?;
            self.skip_space();
            if !self.accept(b':') {
                return Err("':' is missing");
            }
            let value = self.value(depth)?;
            member(name, value);
            self.skip_space();
            if self.accept(b'}') {
                return Ok(());
            }
            if !self.accept(b',') {
                return Err("',' or '}' is missing");
            }
        }
    }

    fn array(&mut self, depth: usize) -> Parsed<()> {
        self.open(depth)?;
        if self.accept(b']') {
            return Ok(());
        }
        loop {
            self.value(depth)?;
            self.skip_space();
            if self.accept(b']') {
                return Ok(());
            }
            if !self.accept(b',') {
                return Err("',' or ']' is missing");
            }
        }
    }

    fn open(&mut self, depth: usize) -> Parsed<()> {
        if depth > MAX_DEPTH {
            return Err("too deeply nested");
        }
        self.at += 1;
        self.skip_space();
        Ok(())
    }

    fn number(&mut self) -> Parsed<()> {
        self.accept(b'-');
        if !self.accept(b'0') {
            self.digits()?;
        }
        if self.accept(b'.') {
            self.digits()?;
        }
        if self.accept(b'e') || self.accept(b'E') {
            if !self.accept(b'-') {
                self.accept(b'+');
            }
            self.digits()?;
        }
        Ok(())
    }
    fn digits(&mut self) -> Parsed<()> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start {
            return Err("a value is missing or invalid");
        }
        Ok(())
    }

    fn string(&mut self) -> Parsed<String> {
        if !self.accept(b'"') {
            return Err("'\"' is missing");
        }
        let mut out = String::new();
        loop {
            let rest = &self.text[self.at..];
            let plain =
                rest.find(|c| c == '"' || c == '\\' || c < ' ').ok_or("a string has no end")?;
            out.push_str(&rest[..plain]);
            self.at += plain;
            if self.accept(b'"') {
                return Ok(out);
            }
            if !self.accept(b'\\') {
                return Err("a control character in a string");
            }
            out.push(self.escape()?);
        }
    }

    fn escape(&mut self) -> Parsed<char> {
        let c = self.peek().ok_or("a string has no end")?;
        let decoded = match c {
            b'"' | b'\\' | b'/' => c as char,
            b'b' => '\x08',
            b'f' => '\x0c',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 1;
                return self.code_point();
            }
            _ => return Err("unknown escape"),
        };
        self.at += 1;
        Ok(decoded)
    }

    /// Reads the digits of \uXXXX, and the second half of a surrogate pair.
    fn code_point(&mut self) -> Parsed<char> {
        let first = self.hex()?;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first).ok_or("a lone surrogate in a string");
        }
        if !(self.accept(b'\\') && self.accept(b'u')) {
            return Err("a lone surrogate in a string");
        }
        let second = self.hex()?;
        if !(0xdc00..0xe000).contains(&second) {
            return Err("a lone surrogate in a string");
        }
        char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00))
            .ok_or("unknown escape")
    }
    fn hex(&mut self) -> Parsed<u32> {
        let mut value = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|c| (c as char).to_digit(16));
            value = value * 16 + digit.ok_or("unknown escape")?;
            self.at += 1;
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> Value {
        Value::Text(value.to_string())
    }

    #[test]
    fn objects_have_their_members_in_order() {
        let json = br#" {"a":"x", "b" : true,"c":[1,{"d":[]}],"a":-1.5e+3,"":null,"f":false} "#;
        let names = ["a", "b", "c", "a", "", "f"].map(String::from);
        let values = [
            text("x"),
            Value::Bool(true),
            Value::Other,
            Value::Other,
            Value::Other,
            Value::Bool(false),
        ];
        let expected: Vec<_> = names.into_iter().zip(values).collect();
        assert_eq!(read_object(json), Ok(expected));
        assert_eq!(read_object(b"{}"), Ok(vec![]));
    }

    #[test]
    fn escapes_are_decoded() {
        for (json, expected) in [
            (r#"{"t":"\"\\\/\b\f\n\r\t"}"#, "\"\\/\u{8}\u{c}\n\r\t"),
            (r#"{"t":"\u0041\u00e9\u20AC\ud83d\ude00\u0000"}"#, "A\u{e9}\u{20ac}\u{1f600}\0"),
            ("{\"t\":\"\u{e9}\u{1f600}\"}", "\u{e9}\u{1f600}"),
        ] {
            assert_eq!(
                read_object(json.as_bytes()),
                Ok(vec![("t".to_string(), text(expected))]),
                "{}",
                json
            );
        }
    }

    #[test]
    fn invalid_texts_are_rejected() {
        let mut invalid: Vec<Vec<u8>> = [
            "",
            " ",
            "[]",
            "null",
            "7",
            "\"t\"",
            "{",
            "{]",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{\"a\":1 \"b\":2}",
            "{\"a\":01}",
            "{\"a\":1.}",
            "{\"a\":1e}",
            "{\"a\":-}",
            "{\"a\":+1}",
            "{\"a\":tru}",
            "{\"a\":nul",
            "{}x",
            "{\"a\":\"",
            "{\"a\":\"\\",
            "{\"a\":\"\\x\"}",
            "{\"a\":\"\\u12\"}",
            "{\"a\":\"\\u12\u{e9}\"}",
            "{\"a\":\"\n\"}",
            "{\"a\":\"\\ud800\"}",
            "{\"a\":\"\\ud800x\"}",
            "{\"a\":\"\\ud800\\u0041\"}",
            "{\"a\":\"\\udc00\"}",
            "{\"a\":[1,]}",
            "{\"a\":[1",
            "{\"a\":[1}",
            "{a:1}",
            "{\"\u{e9}",
        ]
        .iter()
        .map(|json| json.as_bytes().to_vec())
        .collect();
        invalid.push(b"{\"a\":\"\xff\"}".to_vec());
        for json in invalid {
            assert!(read_object(&json).is_err(), "{}", String::from_utf8_lossy(&json));
        }
    }

    #[test]
    fn nesting_has_a_limit() {
        let nested = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        assert!(read_object(nested(MAX_DEPTH - 1).as_bytes()).is_ok());
        for depth in [MAX_DEPTH, 1_000_000] {
            assert_eq!(
                read_object(nested(depth).as_bytes()).unwrap_err(),
                "too deeply nested at byte 204"
            );
        }
    }

    #[test]
    fn written_strings_are_read_again() {
        for original in ["", "plain", "\"\\/\0\x01\x1f\x7f", "\u{e9}\u{20ac}\u{1f600}\n"] {
            let mut json = "{\"t\":".to_string();
            write_string(&mut json, original);
            json.push('}');
            assert!(json.chars().all(|c| c >= ' '));
            assert_eq!(read_object(json.as_bytes()), Ok(vec![("t".to_string(), text(original))]));
        }
    }
}
