//! One Lua state with what scripts may see in it. EVAL and the libraries of functions have one each, as in Redis: they
//! differ in a few globals, and forgetting all of one kind is dropping its state.
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use mlua::chunk::ChunkMode;
use mlua::state::{GcIncParams, GcMode};
use mlua::{
    BString, Either, Function, HookTriggers, Lua, LuaOptions, LuaString, StdLib, Table, Value, VmState,
};

use super::answer::Keys;
use super::host::{self, Shared};
use super::lib;
use super::raise::{self, raise};

const PRELUDE: &str = include_str!("prelude.lua");
/// The name that errors of EVAL's scripts show.
pub const EVAL_NAME: &str = "@user_script";
/// The name that errors of libraries show.
pub const FUNCTION_NAME: &str = "@user_function";
/// The hook runs after this many instructions.
const INSTRUCTIONS_PER_PULSE: u32 = 100_000;
/// After this many runs the state is tidied up.
const RUNS_PER_TIDYING: u32 = 256;
/// A state larger than this is collected a step further at such a time: a script may have left so much that it takes
/// long until Lua thinks of it. The garbage of small scripts is Lua's own business, which it does in larger portions.
const UNHURRIED_BYTES_MAX: usize = 1 << 20;
/// Steps of the collector at such a time.
const STEPS_MAX: u32 = 10;
/// The next collection begins when the state has grown to so many percent of what the last one left.
const GROWTH_PERCENT: i32 = 300;

/// For what a state is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// EVAL.
    Eval,
    /// Libraries.
    Functions,
}

/// A state.
pub struct Vm {
    lua: Lua,
    shared: Rc<Shared>,
    kind: Kind,
    run: Function,
    load_library: Function,
    sweep: Function,
    chunks: Table,
    keys: Keys,
    /// Numbers of `chunks` that are free, and the largest ever used.
    free: RefCell<Vec<usize>>,
    used: Cell<usize>,
    runs: Cell<u32>,
    /// Keeps the names of chunks from being collected.
    _names: Table,
}

impl Vm {
    /// Makes a state. `memory_bytes_max` is a limit for it; 0 is none.
    ///
    /// # Errors
    /// When the limit is too low for the libraries.
    pub fn new(kind: Kind, shared: &Rc<Shared>, memory_bytes_max: usize) -> mlua::Result<Vm> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH | StdLib::OS;
        let lua = Lua::new_with(libraries, LuaOptions::default())?;
        let functions = kind == Kind::Functions;
        let prelude = lua.load(PRELUDE).set_name(host::PRELUDE_NAME);
        let parts: Table = prelude.call((host::table(&lua, shared)?, open_libraries(&lua)?, functions))?;
        lua.set_globals(parts.raw_get("env")?)?;
        hook(&lua, shared, false)?;
        lua.gc_set_mode(GcMode::Incremental(GcIncParams::default().pause(GROWTH_PERCENT)));
        if memory_bytes_max > 0 {
            lua.set_memory_limit(memory_bytes_max)?;
        }
        Ok(Vm {
            run: parts.raw_get("run")?,
            load_library: parts.raw_get("load_library")?,
            sweep: parts.raw_get("sweep")?,
            chunks: parts.raw_get("chunks")?,
            keys: Keys::new(&lua, parts.raw_get("next")?)?,
            free: RefCell::default(),
            used: Cell::new(0),
            runs: Cell::new(0),
            _names: parts.raw_get("names")?,
            shared: shared.clone(),
            kind,
            lua,
        })
    }

    /// The keys that `Answer` looks for.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// A text, or a number as Lua writes it.
    pub fn text_of(&self, value: &Value) -> Option<Vec<u8>> {
        host::text_of(&self.lua, value).ok().flatten()
    }

    /// Bytes that the state takes.
    pub fn memory_bytes(&self) -> usize {
        self.lua.used_memory()
    }

    /// Compiles text and keeps the result under the number that is returned.
    ///
    /// # Errors
    /// The compiler's message.
    pub fn compile(&self, text: &[u8]) -> Result<usize, String> {
        let name = if self.kind == Kind::Eval { EVAL_NAME } else { FUNCTION_NAME };
        // A blank makes the parser see compiled code as text, which it is not.
        let spaced = if text.first() == Some(&27) { [b" ", text].concat() } else { Vec::new() };
        let text = if spaced.is_empty() { text } else { &spaced };
        let chunk = self.lua.load(text).set_name(name).set_mode(ChunkMode::Text).into_function();
        chunk.and_then(|chunk| self.keep(chunk)).map_err(|error| raise::text(&error))
    }

    /// Keeps a function under a number.
    ///
    /// # Errors
    /// When memory is out.
    pub fn keep(&self, function: Function) -> mlua::Result<usize> {
        let number = self.free.borrow_mut().pop().unwrap_or_else(|| {
            self.used.set(self.used.get() + 1);
            self.used.get()
        });
        self.chunks.raw_set(number, function)?;
        Ok(number)
    }

    /// Lets go what is kept under `number`.
    pub fn release(&self, number: usize) {
        if self.chunks.raw_set(number, Value::Nil).is_ok() {
            self.free.borrow_mut().push(number);
        }
    }

    /// Runs what is kept under `number`. The first part says whether it came to its end: then the second is what it
    /// returned, else the error.
    ///
    /// # Errors
    /// When it could not be begun.
    pub fn call<'a>(
        &self,
        number: usize,
        keys: impl Iterator<Item = &'a [u8]>,
        args: impl Iterator<Item = &'a [u8]>,
    ) -> mlua::Result<(bool, Value)> {
        let (key, keys) = self.given(keys)?;
        let (arg, args) = self.given(args)?;
        self.run.call((number, key, arg, keys, args))
    }

    /// Words for a table: no table for none, and one word by itself: the prelude makes these tables in less time.
    fn given<'a>(
        &self,
        mut words: impl Iterator<Item = &'a [u8]>,
    ) -> mlua::Result<(Option<Word<'a>>, Option<Table>)> {
        let Some(first) = words.next() else { return Ok((None, None)) };
        let Some(second) = words.next() else { return Ok((Some(word(first)), None)) };
        let all = [first, second].into_iter().chain(words).map(word);
        Ok((None, Some(self.lua.create_sequence_from(all)?)))
    }

    /// Runs the chunk under `number` as a library that is loaded.
    ///
    /// # Errors
    /// The error's text.
    pub fn load_library(&self, number: usize) -> Result<(), String> {
        let loaded = self.load_library.call::<(bool, Value)>(number);
        self.after_run();
        match loaded {
            Ok((true, _)) => Ok(()),
            Ok((false, Value::Table(table))) => match table.raw_get::<Option<LuaString>>("err") {
                Ok(Some(text)) => Err(text.to_string_lossy()),
                _ => Err("ERR unknown error".to_string()),
            },
            Ok((false, other)) => {
                let text = self.text_of(&other).unwrap_or_else(|| b"unknown error".to_vec());
                Err(format!("ERR {}", String::from_utf8_lossy(&text)))
            }
            Err(error) => Err(format!("ERR {}", raise::text(&error))),
        }
    }

    /// Tidies up after a run: the hook of a killed one, garbage now and then.
    pub fn after_run(&self) {
        if self.shared.end.take().is_some() {
            // Fails without memory only; then the next script is killed, too.
            let _ = hook(&self.lua, &self.shared, false);
        }
        self.runs.set(self.runs.get() + 1);
        if self.runs.get() >= RUNS_PER_TIDYING {
            self.runs.set(0);
            self.tidy_up();
        }
    }

    #[cold]
    fn tidy_up(&self) {
        let _ = self.sweep.call::<()>(());
        if self.memory_bytes() > UNHURRIED_BYTES_MAX {
            // Fails for want of memory, or is done with all garbage.
            let _ = (0..STEPS_MAX).try_for_each(|_| matches!(self.lua.gc_step(), Ok(false)).then_some(()));
        }
    }
}

/// Valid UTF-8 goes straight to Lua's stack, other bytes by way of a handle.
type Word<'a> = Either<&'a str, BString>;

fn word(bytes: &[u8]) -> Word<'_> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Either::Left(text),
        Err(_) => Either::Right(BString::from(bytes)),
    }
}

/// The tables of the libraries that are not Lua's own, by the names of their globals.
fn open_libraries(lua: &Lua) -> mlua::Result<Table> {
    let tables = lua.create_table()?;
    lib::open_all(lua, &tables)?;
    Ok(tables)
}

/// Sets the hook: every so many instructions; for a script that must end at each line, so that it cannot catch the
/// error and go on. The prelude is not ended: it has things to put back.
fn hook(lua: &Lua, shared: &Rc<Shared>, ending: bool) -> mlua::Result<()> {
    let triggers = if ending {
        HookTriggers::EVERY_LINE
    } else {
        HookTriggers::new().every_nth_instruction(INSTRUCTIONS_PER_PULSE)
    };
    let shared = shared.clone();
    lua.set_global_hook(triggers, move |lua, frame| {
        if shared.end.borrow().is_none() {
            let Err(text) = shared.pulse() else { return Ok(VmState::Continue) };
            shared.end.replace(Some(text));
            hook(lua, &shared, true)?;
        }
        if frame.source().source.as_deref() == Some(host::PRELUDE_NAME) {
            return Ok(VmState::Continue);
        }
        Err(raise(shared.end.borrow().as_deref().unwrap_or_default()))
    })
}
