//! The libraries of Redis's scripts: `cjson`, `cmsgpack`, `struct` and `bit`, in safe Rust.
//!
//! Must stay true: what a script sees (names, results, texts of errors, order of object keys) is what Redis 8.0 shows;
//! bytes from a script are hostile, so nothing recurses by their nesting and nothing is reserved for what they claim.
//!
//! A library's error reaches Lua as a value of `mlua`'s, not as the string that scripts expect; the engine
//! makes strings of them where a script catches them (see [`guard`]).

pub mod bit;
mod call;
pub mod cjson;
pub mod cmsgpack;
pub mod guard;
pub mod msgpack;
pub mod structs;

/// Slots that a C function may use on Lua's stack (`LUAI_MAXCSTACK`). The originals of these libraries recurse on that
/// stack, so it is what bounds their nesting and their numbers of results.
pub const STACK_SLOTS_MAX: usize = 8_000;

/// Slots that a call may take of those for itself, which leaves that many fewer for results than Redis has.
const SLOTS_OF_CALL: usize = 64;

/// Opens all libraries and stores them in `globals` under the names that scripts know.
///
/// # Errors
/// Lua's: memory, or a state without its base library.
pub fn open_all(lua: &mlua::Lua, globals: &mlua::Table) -> mlua::Result<()> {
    globals.raw_set("cjson", cjson::open(lua)?)?;
    globals.raw_set("cmsgpack", cmsgpack::open(lua)?)?;
    globals.raw_set("struct", structs::open(lua)?)?;
    globals.raw_set("bit", bit::open(lua)?)
}

#[cfg(test)]
pub(crate) mod testing {
    //! A Lua state with the libraries as globals.

    use mlua::{Lua, Value};

    /// A state with the libraries and the guards.
    pub(crate) fn state() -> Lua {
        let lua = Lua::new();
        super::open_all(&lua, &lua.globals()).expect("the libraries open");
        super::guard::open(&lua, &lua.globals()).expect("the guards open");
        lua
    }

    /// Runs `code` in `lua` as Redis runs a script: its first result as text, or its error.
    pub(crate) fn run_in(lua: &Lua, code: &str) -> String {
        match lua.load(code).set_name("@user_script").eval::<Value>() {
            Ok(Value::String(text)) => text.to_string_lossy(),
            Ok(other) => {
                let tostring: mlua::Function = lua.globals().get("tostring").expect("Lua's tostring");
                tostring.call(other).expect("a text")
            }
            Err(error) => format!("error: {}", String::from_utf8_lossy(&super::guard::text_of(&error))),
        }
    }

    /// Runs each code in one state and compares.
    #[track_caller]
    pub(crate) fn check(cases: &[(&str, &str)]) {
        let lua = state();
        for (code, want) in cases {
            assert_eq!(run_in(&lua, code), *want, "{code}");
        }
    }
}
