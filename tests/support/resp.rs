//! Replies of RESP2 and RESP3 as values. A plain reader, independent of the server's code.

/// Any reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `+`
    Simple(Vec<u8>),
    /// `-` or `!`
    Error(Vec<u8>),
    /// `:`
    Int(i64),
    /// `$`
    Bulk(Vec<u8>),
    /// `$-1`, `*-1` or `_`
    Null,
    /// `*`
    Array(Vec<Value>),
    /// `%`
    Map(Vec<(Value, Value)>),
    /// `~`
    Set(Vec<Value>),
    /// `>`
    Push(Vec<Value>),
    /// `,`, as its text
    Double(Vec<u8>),
    /// `#`
    Bool(bool),
    /// `(`
    Big(Vec<u8>),
    /// `=`, format and text
    Verbatim(Vec<u8>),
}

impl Value {
    /// The bytes of a text, none for other kinds.
    pub fn text(&self) -> &[u8] {
        match self {
            Value::Simple(t) | Value::Error(t) | Value::Bulk(t) | Value::Double(t) | Value::Big(t) => t,
            Value::Verbatim(t) => t.get(4..).unwrap_or_default(),
            _ => &[],
        }
    }

    /// The text of a text.
    pub fn string(&self) -> String {
        String::from_utf8_lossy(self.text()).into_owned()
    }

    /// The number.
    ///
    /// # Panics
    /// When it is none.
    pub fn int(&self) -> i64 {
        match self {
            Value::Int(n) => *n,
            other => panic!("a number was expected: {other:?}"),
        }
    }

    /// The elements of an array, set or push; a map's keys and values in turns.
    ///
    /// # Panics
    /// When it is none.
    pub fn items(&self) -> Vec<Value> {
        match self {
            Value::Array(items) | Value::Set(items) | Value::Push(items) => items.clone(),
            Value::Map(pairs) => pairs.iter().flat_map(|(k, v)| [k.clone(), v.clone()]).collect(),
            other => panic!("an array was expected: {other:?}"),
        }
    }

    /// Whether it is an error.
    pub fn is_error(&self) -> bool {
        matches!(self, Value::Error(_))
    }
}

/// Reads the value at the start of `bytes`, and how many bytes it has; `None` when it is cut.
///
/// # Panics
/// When the bytes are no reply.
pub fn read(bytes: &[u8]) -> Option<(Value, usize)> {
    let mut at = 0;
    let value = read_at(bytes, &mut at)?;
    Some((value, at))
}

fn line<'a>(bytes: &'a [u8], at: &mut usize) -> Option<&'a [u8]> {
    let rest = &bytes[*at..];
    let end = rest.windows(2).position(|w| w == b"\r\n")?;
    *at += end + 2;
    Some(&rest[..end])
}

fn count(line: &[u8]) -> i64 {
    std::str::from_utf8(line)
        .ok()
        .and_then(|t| t.parse().ok())
        .unwrap_or_else(|| panic!("no length: {}", super::show(line)))
}

fn body<'a>(bytes: &'a [u8], at: &mut usize, len: usize) -> Option<&'a [u8]> {
    let body = bytes.get(*at..*at + len)?;
    let end = bytes.get(*at + len..*at + len + 2)?;
    assert_eq!(end, b"\r\n", "a bulk ends with a line end");
    *at += len + 2;
    Some(body)
}

fn many(bytes: &[u8], at: &mut usize, n: i64) -> Option<Vec<Value>> {
    (0..n).map(|_| read_at(bytes, at)).collect()
}

fn read_at(bytes: &[u8], at: &mut usize) -> Option<Value> {
    let kind = *bytes.get(*at)?;
    *at += 1;
    let head = line(bytes, at)?;
    Some(match kind {
        b'+' => Value::Simple(head.to_vec()),
        b'-' => Value::Error(head.to_vec()),
        b':' => Value::Int(count(head)),
        b',' => Value::Double(head.to_vec()),
        b'(' => Value::Big(head.to_vec()),
        b'#' => Value::Bool(head == b"t"),
        b'_' => Value::Null,
        b'$' | b'*' if head == b"-1" => Value::Null,
        b'$' => Value::Bulk(body(bytes, at, count(head) as usize)?.to_vec()),
        b'=' => Value::Verbatim(body(bytes, at, count(head) as usize)?.to_vec()),
        b'!' => Value::Error(body(bytes, at, count(head) as usize)?.to_vec()),
        b'*' => Value::Array(many(bytes, at, count(head))?),
        b'~' => Value::Set(many(bytes, at, count(head))?),
        b'>' => Value::Push(many(bytes, at, count(head))?),
        b'%' => {
            let flat = many(bytes, at, 2 * count(head))?;
            Value::Map(flat.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect())
        }
        other => panic!("no reply starts with {:?}: {}", char::from(other), super::show(&bytes[*at - 1..])),
    })
}

#[test]
fn values_are_read_and_cut_values_are_told() {
    let cases: [(&[u8], Value); 6] = [
        (b"+OK\r\n", Value::Simple(b"OK".to_vec())),
        (b"$3\r\na\r\n\r\n", Value::Bulk(b"a\r\n".to_vec())),
        (b"*2\r\n:-1\r\n*-1\r\n", Value::Array(vec![Value::Int(-1), Value::Null])),
        (b"%1\r\n$1\r\na\r\n#t\r\n", Value::Map(vec![(Value::Bulk(b"a".to_vec()), Value::Bool(true))])),
        (b"=5\r\ntxt:x\r\n", Value::Verbatim(b"txt:x".to_vec())),
        (b"_\r\n", Value::Null),
    ];
    for (bytes, value) in cases {
        assert_eq!(read(bytes), Some((value, bytes.len())));
        for cut in 0..bytes.len() {
            assert_eq!(read(&bytes[..cut]), None);
        }
    }
}
