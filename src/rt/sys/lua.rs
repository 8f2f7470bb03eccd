//! Functions for Lua that take words and give one back, without a handle for each of them: what mlua spends on handles
//! is more than what most commands of scripts cost.
//!
//! Must stay true: an error of Lua leaves these functions by a jump over [`enter`], which therefore has nothing that must
//! be dropped; all that has is in [`answer`], which calls nothing that may raise an error.
use std::cell::Cell;
use std::ffi::{c_char, c_int};
use std::ops::Range;

use mlua::{Function, Lua, ffi};

/// A larger reply's buffer is given back after use.
const REPLY_BYTES_KEEP: usize = 64 * 1024;

thread_local! {
    /// Holds the text of an answer until Lua has copied it, and is used again.
    static REPLY: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// An argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Word<'a> {
    /// A string.
    Text(&'a [u8]),
    /// A number.
    Number(f64),
    /// Anything else.
    Other,
}

/// The arguments of a call.
pub struct Words {
    state: *mut ffi::lua_State,
    count: c_int,
}

impl Words {
    /// All of them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Word<'_>> {
        (0..self.count).map(|index| self.get(index + 1))
    }

    fn get(&self, place: c_int) -> Word<'_> {
        // SAFETY: `Words` are made for as long as the function runs that was given `count` arguments, which stay at
        // their places meanwhile; neither reading the type nor the value of that type changes the stack or fails.
        // Checked by: `words_come_and_go`.
        unsafe {
            match ffi::lua_type(self.state, place) {
                ffi::LUA_TNUMBER => Word::Number(ffi::lua_tonumber(self.state, place)),
                ffi::LUA_TSTRING => {
                    let mut bytes = 0;
                    let at = ffi::lua_tolstring(self.state, place, &mut bytes);
                    Word::Text(std::slice::from_raw_parts(at.cast(), bytes))
                }
                _ => Word::Other,
            }
        }
    }
}

/// What a call gives back.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// A number.
    Number(f64),
    /// `false`.
    False,
    /// A part of the reply, as a string.
    Text(Range<usize>),
    /// What the function returns that makes answers of other kinds.
    Made,
    /// The same, raised as an error.
    Raised,
}

/// What is called.
pub trait Callee {
    /// Answers a call. `reply` is empty, and is a place for the answer's text.
    fn call(words: &Words, reply: &mut Vec<u8>) -> Answer;
}

/// A function that calls `C`. `make` is called, without arguments, for answers that are [`Answer::Made`] or
/// [`Answer::Raised`].
///
/// # Errors
/// When memory is out.
pub fn function<C: Callee>(lua: &Lua, make: Function) -> mlua::Result<Function> {
    // SAFETY: the closure takes the one value that is on the stack and leaves one. Checked by: `words_come_and_go`.
    unsafe { lua.exec_raw(make, |state| ffi::lua_pushcclosure(state, enter::<C>, 1)) }
}

/// Everything but what may raise an error.
fn answer<C: Callee>(state: *mut ffi::lua_State) -> Answer {
    // SAFETY: Lua called us with this state.
    let words = Words { state, count: unsafe { ffi::lua_gettop(state) } };
    let mut reply = REPLY.take();
    if reply.capacity() > REPLY_BYTES_KEEP {
        reply = Vec::new();
    }
    reply.clear();
    let answer = C::call(&words, &mut reply);
    REPLY.set(reply);
    answer
}

/// Where a part of the reply lies; it stays there until the next call.
fn text(range: Range<usize>) -> (*const c_char, usize) {
    let reply = REPLY.take();
    let (at, bytes) = reply.get(range).map_or((c"".as_ptr(), 0), |text| (text.as_ptr().cast(), text.len()));
    REPLY.set(reply);
    (at, bytes)
}

/// What Lua calls.
unsafe extern "C-unwind" fn enter<C: Callee>(state: *mut ffi::lua_State) -> c_int {
    let answer = answer::<C>(state);
    // SAFETY: a function of Lua has room for twenty values; the text lies still while Lua copies it; what may jump away
    // finds nothing here that must be dropped. Checked by: `words_come_and_go`.
    unsafe {
        match answer {
            Answer::Number(number) => ffi::lua_pushnumber(state, number),
            Answer::False => ffi::lua_pushboolean(state, 0),
            Answer::Text(range) => {
                let (at, bytes) = text(range);
                ffi::lua_pushlstring_(state, at, bytes);
            }
            Answer::Made | Answer::Raised => {
                ffi::lua_pushvalue(state, ffi::lua_upvalueindex(1));
                ffi::lua_call(state, 0, 1);
                if answer == Answer::Raised {
                    ffi::lua_error(state);
                }
            }
        }
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says what it was given, or does what the first word says.
    struct Echo;

    impl Callee for Echo {
        fn call(words: &Words, reply: &mut Vec<u8>) -> Answer {
            match words.iter().next() {
                Some(Word::Text(b"made")) => return Answer::Made,
                Some(Word::Text(b"raised")) => return Answer::Raised,
                Some(Word::Text(b"false")) => return Answer::False,
                Some(Word::Text(b"beyond")) => return Answer::Text(0..1 << 40),
                Some(Word::Number(number)) => return Answer::Number(number + 1.0),
                _ => {}
            }
            assert!(reply.is_empty());
            for word in words.iter() {
                reply.extend_from_slice(format!("{word:?} ").as_bytes());
            }
            Answer::Text(0..reply.len())
        }
    }

    #[test]
    fn words_come_and_go() {
        let lua = Lua::new();
        let make = lua.create_function(|lua, ()| lua.create_sequence_from([7])).unwrap();
        lua.globals().set("echo", function::<Echo>(&lua, make).unwrap()).unwrap();
        let check = |code: &str, wanted: &str| {
            assert_eq!(lua.load(code).eval::<String>().unwrap(), wanted, "{code}");
        };
        check("return echo('a\\0b', {}, nil, 'c')", "Text([97, 0, 98]) Other Other Text([99]) ");
        check("return echo()", "");
        check("return echo('beyond')", "");
        check("return tostring(echo(41))", "42");
        check("return tostring(echo('false'))", "false");
        check("return tostring(echo('made')[1])", "7");
        check("local ok, raised = pcall(echo, 'raised') return tostring(ok) .. raised[1]", "false7");
        check("return coroutine.wrap(function() return echo('x' .. 1) end)()", "Text([120, 49]) ");
        check("local t = {} for n = 1, 200 do t[n] = 'x' end return tostring(#echo(unpack(t)))", "2400");
    }
}
