//! What the syntax line of a row says, taken apart: the argument trees of COMMAND DOCS, HELP replies and
//! docs/commands.md.
//!
//! The grammar of a syntax line: words in capitals are tokens, other words name values; `[x]` is optional;
//! `x [x ...]` repeats; `A|B` is a choice of two words. Inside brackets a choice spans everything between the
//! bars as soon as a token there takes a value (`[EX seconds|PX milliseconds]`, `[NX|IFEQ x]`); `<a|b c>` is such a choice that
//! must be made. A token takes the values that follow it. `name:type` says a type that the name does not imply.
//! Must stay true: any line gives a tree, and a line never says less than its tree.
use super::spec::{Begin, Find, Group, Handler, KeyPart, Spec};
use super::table::{Row, Table, table};
use crate::wire::Out;

/// The type of an argument, as COMMAND DOCS prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgKind {
    /// Any bytes.
    String,
    /// A whole number.
    Integer,
    /// A number.
    Double,
    /// A key.
    Key,
    /// A glob pattern.
    Pattern,
    /// A time since 1970.
    UnixTime,
    /// A word that stands for itself.
    PureToken,
    /// One of `args`.
    OneOf,
    /// All of `args`, in order.
    Block,
}

impl ArgKind {
    /// As COMMAND DOCS prints it.
    pub fn name(self) -> &'static str {
        match self {
            ArgKind::String => "string",
            ArgKind::Integer => "integer",
            ArgKind::Double => "double",
            ArgKind::Key => "key",
            ArgKind::Pattern => "pattern",
            ArgKind::UnixTime => "unix-time",
            ArgKind::PureToken => "pure-token",
            ArgKind::OneOf => "oneof",
            ArgKind::Block => "block",
        }
    }
}

/// A node of an argument tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Arg {
    /// What the argument is called.
    pub name: String,
    /// Its type.
    pub kind: ArgKind,
    /// The word that stands before it, or for it.
    pub token: Option<String>,
    /// May be left out.
    pub optional: bool,
    /// May be repeated.
    pub multiple: bool,
    /// Its token is repeated with it.
    pub multiple_token: bool,
    /// Which of the row's key parts finds it.
    pub key_part: Option<usize>,
    /// Parts of a block or choice.
    pub args: Vec<Arg>,
}

impl Arg {
    fn new(name: impl Into<String>, kind: ArgKind) -> Arg {
        Arg {
            name: name.into(),
            kind,
            token: None,
            optional: false,
            multiple: false,
            multiple_token: false,
            key_part: None,
            args: Vec::new(),
        }
    }

    fn group(name: impl Into<String>, kind: ArgKind, args: Vec<Arg>) -> Arg {
        Arg { args, ..Arg::new(name, kind) }
    }
}

/// The argument tree of a row.
pub fn arguments(spec: &Spec) -> Vec<Arg> {
    let mut args = build(&Reader { rest: spec.syntax }.nodes());
    let index = if spec.name.contains('|') { 2 } else { 1 };
    let mut walk = KeyWalk { parts: spec.keys, index: Some(index), seen: 0 };
    for arg in &mut args {
        walk.visit(arg);
    }
    args
}

/// A piece of a syntax line.
#[derive(Clone, Debug, PartialEq)]
enum Node<'a> {
    Word(&'a str),
    Optional(Vec<Node<'a>>),
    Choice(Vec<Vec<Node<'a>>>),
    /// `...`
    Again,
    /// `|`; gone once a level is complete.
    Bar,
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    /// Everything up to the end.
    fn nodes(&mut self) -> Vec<Node<'a>> {
        let mut nodes = Vec::new();
        loop {
            nodes.append(&mut self.level());
            if self.rest.is_empty() {
                return join_words(nodes);
            }
        }
    }

    /// Everything up to the bracket that closes this level, which is consumed; bars still in.
    fn level(&mut self) -> Vec<Node<'a>> {
        let mut nodes = Vec::new();
        while let Some(first) = self.rest.bytes().next() {
            let after = &self.rest[1..];
            match first {
                b' ' => self.rest = after,
                b'|' => {
                    self.rest = after;
                    nodes.push(Node::Bar);
                }
                b'[' => {
                    self.rest = after;
                    let inner = self.level();
                    nodes.push(Node::Optional(split_bracket(inner)));
                }
                b'<' => {
                    self.rest = after;
                    let inner = self.level();
                    nodes.push(split_level(inner));
                }
                b']' | b'>' => {
                    self.rest = after;
                    return nodes;
                }
                _ => nodes.push(self.word()),
            }
        }
        nodes
    }

    fn word(&mut self) -> Node<'a> {
        let end = self.rest.find([' ', '|', '[', ']', '<', '>']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        if word == "..." { Node::Again } else { Node::Word(word) }
    }
}

fn is_token(word: &str) -> bool {
    !word.bytes().any(|b| b.is_ascii_lowercase())
}

fn is_value(node: &Node<'_>) -> bool {
    matches!(node, Node::Word(word) if !is_token(word))
}

/// The inside of square brackets: one choice when a bar follows a value, or when a token with values stands behind
/// the last bar; else words and choices of words.
fn split_bracket(nodes: Vec<Node<'_>>) -> Vec<Node<'_>> {
    let behind_value = nodes.windows(3).any(|w| w[1] == Node::Bar && is_value(&w[0]) && !is_value(&w[2]));
    let last = nodes.rsplit(|node| *node == Node::Bar).next().filter(|last| last.len() < nodes.len());
    let ends_in_value = last.is_some_and(|last| {
        matches!(last, [Node::Word(token), values @ ..] if is_token(token) && !values.is_empty() && values.iter().all(is_value))
    });
    if behind_value || ends_in_value { vec![split_level(nodes)] } else { join_words(nodes) }
}

/// A choice between everything that stands between the bars.
fn split_level(nodes: Vec<Node<'_>>) -> Node<'_> {
    Node::Choice(nodes.split(|node| *node == Node::Bar).map(<[Node<'_>]>::to_vec).collect())
}

/// Makes choices of the words that bars join.
fn join_words(nodes: Vec<Node<'_>>) -> Vec<Node<'_>> {
    let mut joined: Vec<Node<'_>> = Vec::new();
    let mut bar = false;
    for node in nodes {
        match node {
            Node::Bar => bar = true,
            node if bar => {
                bar = false;
                match joined.pop() {
                    Some(Node::Choice(mut choices)) => {
                        choices.push(vec![node]);
                        joined.push(Node::Choice(choices));
                    }
                    first => {
                        let choices = first.into_iter().chain([node]).map(|n| vec![n]).collect();
                        joined.push(Node::Choice(choices));
                    }
                }
            }
            node => joined.push(node),
        }
    }
    joined
}

/// The nodes that `nodes[at]` repeats, when it is `[x ...]` behind an `x`.
fn repeats<'n, 'a>(nodes: &'n [Node<'a>], at: usize) -> Option<&'n [Node<'a>]> {
    let Some(Node::Optional(inner)) = nodes.get(at) else { return None };
    let (Node::Again, pattern) = inner.split_last()? else { return None };
    nodes[..at].ends_with(pattern).then_some(pattern)
}

fn build(nodes: &[Node<'_>]) -> Vec<Arg> {
    let mut args = Vec::new();
    let mut at = 0;
    while at < nodes.len() {
        if let Some(pattern) = repeats(nodes, at) {
            repeat_last(&mut args, build(pattern).len());
            at += 1;
            continue;
        }
        match &nodes[at] {
            Node::Word(word) if is_token(word) => {
                let values = values_behind(nodes, at + 1);
                args.push(with_token(word, build(&nodes[at + 1..values])));
                at = values;
                continue;
            }
            Node::Word(word) => args.push(value(word)),
            Node::Optional(inner) => args.push(optional(inner)),
            Node::Choice(choices) => args.push(choice(choices)),
            Node::Again => {
                if let Some(last) = args.last_mut() {
                    last.multiple = true;
                }
            }
            Node::Bar => {}
        }
        at += 1;
    }
    args
}

/// End of the values that a token takes.
fn values_behind(nodes: &[Node<'_>], first: usize) -> usize {
    let mut at = first;
    while at < nodes.len() {
        let own_repetition = repeats(&nodes[first..], at - first).is_some();
        if !(is_value(&nodes[at]) || matches!(nodes[at], Node::Choice(_)) || own_repetition) {
            break;
        }
        at += 1;
    }
    at
}

/// What an argument is called that a token stands for.
fn token_name(token: &str) -> String {
    match token {
        "=" => "equal".into(),
        "~" => "approximately".into(),
        "*" => "auto-id".into(),
        "$" => "new-id".into(),
        "CH" => "change".into(),
        "INCR" => "increment".into(),
        "ALPHA" => "sorting".into(),
        _ => token.to_ascii_lowercase(),
    }
}

fn with_token(token: &str, mut values: Vec<Arg>) -> Arg {
    let name = token_name(token);
    let arg = match values.len() {
        0 => Arg::new(name, ArgKind::PureToken),
        1 if values[0].token.is_none() => values.remove(0),
        _ => Arg::group(name, ArgKind::Block, values),
    };
    Arg { token: Some(token.to_string()), ..arg }
}

/// Makes the last `count` arguments one that may be repeated.
fn repeat_last(args: &mut Vec<Arg>, count: usize) {
    let first = args.len().saturating_sub(count);
    let mut tail = args.split_off(first);
    let mut arg = if tail.len() == 1 { tail.remove(0) } else { Arg::group("data", ArgKind::Block, tail) };
    arg.multiple = true;
    arg.multiple_token = arg.token.is_some();
    args.push(arg);
}

/// One argument for a run of nodes.
fn single(nodes: &[Node<'_>]) -> Arg {
    let mut args = build(nodes);
    if args.len() == 1 {
        return args.remove(0);
    }
    let name = args.first().map_or("block".to_string(), |first| format!("{}-block", first.name));
    Arg::group(name, ArgKind::Block, args)
}

fn optional(inner: &[Node<'_>]) -> Arg {
    Arg { optional: true, ..single(inner) }
}

fn choice(choices: &[Vec<Node<'_>>]) -> Arg {
    let args: Vec<Arg> = choices.iter().map(|nodes| single(nodes)).collect();
    let has = |token: &str| args.iter().any(|arg| arg.token.as_deref() == Some(token));
    let name = if has("NX") || has("XX") {
        "condition".to_string()
    } else if has("EX") || has("PX") {
        "expiration".to_string()
    } else if has("ON") && has("OFF") {
        "enabled".to_string()
    } else if has("KM") {
        "unit".to_string()
    } else {
        args.iter().map(|arg| arg.name.as_str()).collect::<Vec<_>>().join("-or-")
    };
    Arg::group(name, ArgKind::OneOf, args)
}

/// A value by its word, which may end in `:type`.
fn value(word: &str) -> Arg {
    let (name, kind) = typed(word);
    Arg::new(name, kind.unwrap_or_else(|| kind_of(name)))
}

fn typed(word: &str) -> (&str, Option<ArgKind>) {
    let Some((name, kind)) = word.rsplit_once(':') else { return (word, None) };
    match kind {
        "string" => (name, Some(ArgKind::String)),
        "integer" => (name, Some(ArgKind::Integer)),
        "double" => (name, Some(ArgKind::Double)),
        _ => (word, None),
    }
}

/// The type that a name implies.
fn kind_of(name: &str) -> ArgKind {
    const INTEGERS: &[&str] = &[
        "bit",
        "client-id",
        "count",
        "cursor",
        "db",
        "decrement",
        "end",
        "increment",
        "index",
        "index1",
        "index2",
        "len",
        "limit",
        "min-match-len",
        "maxage",
        "milliseconds",
        "numfields",
        "numkeys",
        "offset",
        "protover",
        "seconds",
        "start",
        "stop",
        "destination-db",
        "maxlen",
        "frequency",
        "rank",
        "ttl",
        "timeout",
        "version",
    ];
    const DOUBLES: &[&str] = &["height", "latitude", "longitude", "radius", "score", "weight", "width"];
    match name {
        "pattern" | "by-pattern" | "get-pattern" => ArgKind::Pattern,
        _ if name.starts_with("unix-time") => ArgKind::UnixTime,
        _ if INTEGERS.contains(&name) => ArgKind::Integer,
        _ if DOUBLES.contains(&name) => ArgKind::Double,
        _ => ArgKind::String,
    }
}

/// Whether argument `at` is a key of `part`, as far as that is certain from the front.
fn has_place(part: &KeyPart, at: i32) -> bool {
    match (part.begin, part.find) {
        _ if !part.has_keys() => false,
        (Begin::At(first), Find::Range { last, step, .. }) => {
            first == at || (first..=first + last).contains(&at) && (at - first) % step == 0
        }
        _ => false,
    }
}

/// Finds the keys among the arguments of a tree: by their place where it is certain, else by their name.
struct KeyWalk<'a> {
    parts: &'a [KeyPart],
    /// Index of the next argument, while certain.
    index: Option<i32>,
    /// Keys found so far.
    seen: usize,
}

impl KeyWalk<'_> {
    fn visit(&mut self, arg: &mut Arg) {
        const KEY_NAMES: &[&str] =
            &["key", "newkey", "source", "destination", "sourcekey", "destkey", "storekey", "storedistkey"];
        if arg.optional {
            self.index = None;
        }
        if arg.token.is_some() && arg.kind != ArgKind::PureToken {
            self.index = self.index.map(|index| index + 1);
        }
        match arg.kind {
            ArgKind::OneOf => {
                let before = self.index.take();
                arg.args.iter_mut().for_each(|inner| self.visit(inner));
                let plain = arg.args.iter().all(|inner| inner.kind == ArgKind::PureToken);
                self.index = before.filter(|_| plain).map(|index| index + 1);
            }
            ArgKind::Block => arg.args.iter_mut().for_each(|inner| self.visit(inner)),
            ArgKind::PureToken => self.index = self.index.map(|index| index + 1),
            ArgKind::Pattern => {
                arg.key_part = self.parts.iter().position(|part| part.begin == Begin::Derived);
                self.index = self.index.map(|index| index + 1);
            }
            _ => {
                let place = self.index.and_then(|at| self.parts.iter().position(|part| has_place(part, at)));
                if place.is_some() || !self.parts.is_empty() && KEY_NAMES.contains(&arg.name.as_str()) {
                    arg.kind = ArgKind::Key;
                    let named = |part: &KeyPart| part.begin != Begin::Derived;
                    let mut named = (0..self.parts.len()).filter(|part| named(&self.parts[*part]));
                    arg.key_part = place.or(named.nth(self.seen));
                    self.seen += 1;
                }
                self.index = self.index.map(|index| index + 1);
            }
        }
        if arg.optional || arg.multiple {
            self.index = None;
        }
    }
}

/// The syntax line as people read it.
pub fn shown_syntax(syntax: &str) -> String {
    [":string", ":integer", ":double"].iter().fold(syntax.to_string(), |text, kind| text.replace(kind, ""))
}

/// The reply of `container HELP`, from the rows of its subcommands.
pub fn help(container: &str, out: &mut Out) {
    let Some(row) = table().find(container.as_bytes()) else { return out.array(0) };
    let title = container.to_ascii_uppercase();
    let subs = row.spec.subs;
    out.array(1 + 2 * subs.len());
    out.simple(&format!("{title} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    for sub in subs {
        let name = sub.sub_name().to_ascii_uppercase();
        out.simple(format!("{name} {}", shown_syntax(sub.syntax)).trim_end());
        out.simple(&format!("    {}", sub.summary));
    }
}

const PAGE_HEAD: &str = "\
# Commands

This page is generated from the command table (`src/server/table.rs` and the rows of each family); edit the rows,
not this page. `since` is the version of Redis that first had the command.
";

/// The whole text of docs/commands.md.
pub fn commands_md(table: &Table) -> String {
    let answers = |row: &&Row| !matches!(row.spec.handler, Handler::Container);
    let mut rows: Vec<&Row> = table.rows().iter().filter(answers).collect();
    rows.sort_by_key(|row| (row.spec.group, row.spec.name));
    let mut page = PAGE_HEAD.to_string();
    let mut chapter: Option<Group> = None;
    for row in rows {
        if chapter != Some(row.spec.group) {
            chapter = Some(row.spec.group);
            page.push_str(&chapter_head(row.spec.group));
        }
        page.push_str(&page_line(row.spec));
    }
    page
}

fn page_line(spec: &Spec) -> String {
    let call = format!("{} {}", spec.name.replace('|', " ").to_ascii_uppercase(), shown_syntax(spec.syntax));
    let cells =
        [format!("`{}`", call.trim_end()), spec.summary.into(), spec.since.into(), spec.complexity.into()];
    format!("| {} |\n", cells.map(|cell: String| cell.replace('|', "\\|")).join(" | "))
}

fn chapter_head(group: Group) -> String {
    let name = group.name();
    let title = name[..1].to_ascii_uppercase() + &name[1..];
    format!("\n## {title}\n\n| Command | What it does | Since | Cost |\n|---|---|---|---|\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::cx::ReadCx;
    use crate::cmd::spec::{Done, keys};
    use crate::wire::Args;

    fn nop(_: &ReadCx<'_>, _: &mut Args<'_>, _: &mut Out) -> Done {
        Ok(())
    }

    /// A tree in one line: `name:type=TOKEN?+*`, parts in parentheses.
    fn line(args: &[Arg]) -> String {
        let one = |arg: &Arg| {
            let mut text = format!("{}:{}", arg.name, arg.kind.name());
            if let Some(token) = &arg.token {
                text += &format!("={token}");
            }
            for (set, mark) in [(arg.optional, "?"), (arg.multiple, "+"), (arg.multiple_token, "*")] {
                if set {
                    text += mark;
                }
            }
            if let Some(part) = arg.key_part {
                text += &format!("#{part}");
            }
            if !arg.args.is_empty() {
                text += &format!("({})", line(&arg.args));
            }
            text
        };
        args.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    fn tree(syntax: &'static str, parts: &'static [KeyPart]) -> String {
        line(&arguments(&Spec::read("x", syntax, nop).keys(parts)))
    }

    #[test]
    fn trees_of_syntax_lines() {
        let cases = [
            ("message", "message:string"),
            ("[section [section ...]]", "section:string?+"),
            ("command [arg ...]", "command:string arg:string?+"),
            ("parameter value [parameter value ...]", "data:block+(parameter:string value:string)"),
            ("LEFT|RIGHT", "left-or-right:oneof(left:pure-token=LEFT right:pure-token=RIGHT)"),
            (
                "[AUTH username password] [SETNAME name]",
                "auth:block=AUTH?(username:string password:string) name:string=SETNAME?",
            ),
            ("[GET pattern [GET pattern ...]]", "pattern:pattern=GET?+*"),
            ("[ID client-id [client-id ...]]", "client-id:integer=ID?+"),
            ("FIELDS numfields field [field ...]", "fields:block=FIELDS(numfields:integer field:string+)"),
            ("[COUNT count [ANY]]", "count-block:block?(count:integer=COUNT any:pure-token=ANY?)"),
            ("[AGGREGATE SUM|MIN]", "sum-or-min:oneof=AGGREGATE?(sum:pure-token=SUM min:pure-token=MIN)"),
            ("increment:double", "increment:double"),
            ("ip:port", "ip:port:string"),
            ("[NX|XX|IFEQ x]", "condition:oneof?(nx:pure-token=NX xx:pure-token=XX x:string=IFEQ)"),
            ("<ip:port|ID client-id>", "ip:port-or-client-id:oneof(ip:port:string client-id:integer=ID)"),
            (
                "[MAXLEN|MINID [=|~] threshold]",
                "maxlen-or-minid-block:block?(maxlen-or-minid:oneof(maxlen:pure-token=MAXLEN minid:pure-token=MINID) \
                 equal-or-approximately:oneof?(equal:pure-token== approximately:pure-token=~) threshold:string)",
            ),
        ];
        for (syntax, want) in cases {
            assert_eq!(tree(syntax, &[]), want, "{syntax}");
        }
    }

    #[test]
    fn keys_are_found_by_place_and_by_name() {
        assert_eq!(tree("key [key ...]", keys::READ_ALL), "key:key+#0");
        const SECOND: &[KeyPart] = &[super::super::spec::key("RO", 2)];
        assert_eq!(tree("LEFT|RIGHT list", SECOND).split(' ').next_back(), Some("list:key#0"));
        assert_eq!(
            tree(
                "key value [NX|XX] [GET] [EX seconds|PX milliseconds|EXAT unix-time-seconds|KEEPTTL]",
                keys::UPDATE
            ),
            "key:key#0 value:string condition:oneof?(nx:pure-token=NX xx:pure-token=XX) get:pure-token=GET? \
             expiration:oneof?(seconds:integer=EX milliseconds:integer=PX unix-time-seconds:unix-time=EXAT \
             keepttl:pure-token=KEEPTTL)"
        );
        const MSET: &[KeyPart] = &[super::super::spec::key_range("OW", 1, -1, 2)];
        assert_eq!(tree("key value [key value ...]", MSET), "data:block+(key:key#0 value:string)");
    }

    #[test]
    fn lines_of_the_page() {
        let spec = Spec::read("a|b", "key x:double [C|D]", nop).doc(Group::String, "1.2.3", "Does a thing.");
        let want = "| `A B key x [C\\|D]` | Does a thing. | 1.2.3 | O(1) |\n";
        assert_eq!(page_line(&spec), want);
        assert_eq!(chapter_head(Group::Server).lines().nth(1), Some("## Server"));
    }

    #[test]
    fn broken_lines_still_give_trees() {
        for syntax in ["]", "[", "a|", "|a", "<", "...", "[...]", "a [a", "> b", "A|[b]|"] {
            arguments(&Spec::read("x", Box::leak(syntax.to_string().into_boxed_str()), nop));
        }
    }
}
