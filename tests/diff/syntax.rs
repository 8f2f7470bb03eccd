//! Reads the syntax line of a command's row into a tree that commands can be generated from.
//!
//! Words in capitals stand for themselves, others name values; `[...]` may be left out, `|` separates alternatives,
//! `...` repeats what it stands behind in its brackets; `<...>` groups.

/// A piece of a syntax line.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// Stands for itself.
    Token(String),
    /// Names a value.
    Value(String),
    /// May be left out.
    Optional(Vec<Node>),
    /// At least once, in turn.
    Repeat(Vec<Node>),
    /// One of these.
    Choice(Vec<Vec<Node>>),
}

/// Reads a line.
pub fn parse(line: &str) -> Vec<Node> {
    let spaced = line
        .replace('[', " [ ")
        .replace(']', " ] ")
        .replace('<', " < ")
        .replace('>', " > ")
        .replace('|', " | ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let nodes = level(&words, &mut at, false);
    assert_eq!(at, words.len(), "brackets do not match: {line}");
    nodes
}

/// Up to the closing bracket. Inside brackets bars reach over whole sequences, outside over single words.
fn level(words: &[&str], at: &mut usize, bracketed: bool) -> Vec<Node> {
    let mut ways: Vec<Vec<Node>> = vec![Vec::new()];
    let mut repeats = false;
    while let Some(word) = words.get(*at).copied() {
        *at += 1;
        let nodes = ways.last_mut().expect("one way at least");
        match word {
            "]" | ">" => break,
            "[" => nodes.push(Node::Optional(level(words, at, true))),
            "<" => nodes.extend(level(words, at, true)),
            "|" if bracketed => ways.push(Vec::new()),
            "|" => {
                let before = nodes.pop().expect("a word before a bar");
                let after = leaf(words.get(*at).expect("a word after a bar"));
                *at += 1;
                match before {
                    Node::Choice(mut choices) => {
                        choices.push(vec![after]);
                        nodes.push(Node::Choice(choices));
                    }
                    before => nodes.push(Node::Choice(vec![vec![before], vec![after]])),
                }
            }
            "..." => repeats = true,
            word => nodes.push(leaf(word)),
        }
    }
    let nodes = join(ways);
    if repeats { vec![Node::Repeat(nodes)] } else { nodes }
}

/// Alternatives in brackets: whole sequences, but `OVERFLOW WRAP|SAT` has a choice at its end only.
fn join(mut ways: Vec<Vec<Node>>) -> Vec<Node> {
    if ways.len() == 1 {
        return ways.remove(0);
    }
    let common = ways[0].len() > 1 && matches!(ways[0].last(), Some(Node::Token(_)));
    if !common {
        return vec![Node::Choice(ways)];
    }
    let mut start = ways.remove(0);
    let first = start.pop().expect("more than one");
    ways.insert(0, vec![first]);
    start.push(Node::Choice(ways));
    start
}

fn leaf(word: &str) -> Node {
    if word.bytes().any(|b| b.is_ascii_lowercase()) {
        // `name:type` says more than a generator needs.
        Node::Value(word.split(':').next().unwrap_or(word).to_string())
    } else {
        Node::Token(word.to_string())
    }
}

#[test]
fn lines_become_trees() {
    let value = |name: &str| Node::Value(name.into());
    let token = |name: &str| Node::Token(name.into());
    assert_eq!(
        parse("key [key ...] [NX|EX seconds]"),
        vec![
            value("key"),
            Node::Optional(vec![Node::Repeat(vec![value("key")])]),
            Node::Optional(vec![Node::Choice(vec![vec![token("NX")], vec![token("EX"), value("seconds")]])]),
        ]
    );
    assert_eq!(
        parse("AND|OR|NOT x [OVERFLOW WRAP|SAT]"),
        vec![
            Node::Choice(vec![vec![token("AND")], vec![token("OR")], vec![token("NOT")]]),
            value("x"),
            Node::Optional(vec![
                token("OVERFLOW"),
                Node::Choice(vec![vec![token("WRAP")], vec![token("SAT")]])
            ]),
        ]
    );
}
