//! The engine of one shard: what it has compiled, and running it.
//!
//! All methods take `&self`: a script that runs may be set aside, and others may look at the engine meanwhile. Nothing
//! is kept borrowed while a script runs, except its bridge.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use mlua::Value;
use rapidhash::RapidHashMap;
use rapidhash::v3::rapidhash_v3;

use super::Bridge;
use super::answer::{self, Answer};
use super::flags::{self, Flags};
use super::host::{Shared, sha1_hex};
use super::lent::{BRIDGE, SHARED};
use super::libraries::{Function, Libraries, Library};
use super::load::{self, Loading};
use super::raise;
use super::scripts::{Script, Scripts, Sha, parse_sha};
use super::vm::{Kind, Vm};
use crate::rt::log::{self, Level};
use crate::wire::{Error, Out, Protocol};

/// Compiled scripts beyond this number make the engine look which of them are gone.
const COMPILED_MIN: usize = 1024;

/// Settings of an engine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Limit of each of the two Lua states, bytes; 0 is none. A limit costs time at every call.
    pub memory_bytes_max: usize,
}

/// A script or function that is compiled in this engine.
pub struct Ready {
    /// The SHA-1 of the script, or the name of the function.
    pub name: String,
    /// What it says about itself.
    pub flags: Flags,
    script: Option<Arc<Script>>,
    number: usize,
    vm: Rc<Vm>,
}

impl Drop for Ready {
    fn drop(&mut self) {
        self.vm.release(self.number);
    }
}

/// The scripts that are compiled.
#[derive(Default)]
struct Compiled {
    by_sha: RapidHashMap<Sha, Rc<Ready>>,
    /// By the hash of the text, so that EVAL need not compute its SHA-1 each time.
    by_text: RapidHashMap<u64, Rc<Ready>>,
    flushes: u64,
    look_at: usize,
}

/// The functions that are loaded.
#[derive(Default)]
struct Loaded {
    version: u64,
    libraries: Vec<(Arc<Library>, Vec<Rc<Ready>>)>,
    /// By name in small letters.
    functions: RapidHashMap<Vec<u8>, Rc<Ready>>,
}

/// The functions that a library's code registered, with the numbers under which the state keeps them.
type Registered = (Rc<Vm>, Vec<(Function, usize)>);

/// The engine.
#[derive(Default)]
pub struct Engine {
    options: Options,
    shared: Rc<Shared>,
    eval: RefCell<Option<Rc<Vm>>>,
    functions: RefCell<Option<Rc<Vm>>>,
    compiled: RefCell<Compiled>,
    loaded: RefCell<Loaded>,
    running: Cell<bool>,
}

fn no_state(error: &mlua::Error) -> Error {
    Error::err(format_args!("no memory for scripts: {}", raise::text(error)))
}

impl Engine {
    /// An engine that has nothing compiled. The states are made when they are needed.
    pub fn new(options: Options) -> Engine {
        Engine { options, ..Engine::default() }
    }

    /// Whether a script runs, maybe set aside.
    pub fn is_running(&self) -> bool {
        self.running.get()
    }

    /// Bytes of the state of EVAL and of the state of functions.
    pub fn memory_bytes(&self) -> (usize, usize) {
        let bytes = |vm: &RefCell<Option<Rc<Vm>>>| vm.borrow().as_ref().map_or(0, |vm| vm.memory_bytes());
        (bytes(&self.eval), bytes(&self.functions))
    }

    fn vm(&self, kind: Kind) -> Result<Rc<Vm>, Error> {
        let place = if kind == Kind::Eval { &self.eval } else { &self.functions };
        if let Some(vm) = place.borrow().as_ref() {
            return Ok(vm.clone());
        }
        let vm = Vm::new(kind, &self.shared, self.options.memory_bytes_max).map_err(|e| no_state(&e))?;
        let vm = Rc::new(vm);
        place.replace(Some(vm.clone()));
        Ok(vm)
    }
}

/// Scripts.
impl Engine {
    /// Forgets what was flushed elsewhere.
    fn keep_up(&self, scripts: &Scripts) {
        let flushes = scripts.flushes();
        if self.compiled.borrow().flushes != flushes {
            let old = self.compiled.replace(Compiled { flushes, ..Compiled::default() });
            drop((old, self.eval.take()));
        }
    }

    /// The script that EVALSHA names.
    pub fn find(&self, scripts: &Scripts, sha: &[u8]) -> Option<Rc<Ready>> {
        let sha = parse_sha(sha)?;
        self.keep_up(scripts);
        if let Some(ready) = self.compiled_as(scripts, &sha) {
            return Some(ready);
        }
        let script = scripts.get(&sha)?;
        scripts.touch(&script);
        // It compiled on another shard; without memory it is as good as unknown.
        self.compile(script).ok()
    }

    fn compiled_as(&self, scripts: &Scripts, sha: &Sha) -> Option<Rc<Ready>> {
        let compiled = self.compiled.borrow();
        compiled.by_sha.get(sha).filter(|ready| in_use(scripts, ready)).cloned()
    }

    /// The script with this text, as EVAL and, to `keep` it, SCRIPT LOAD give it.
    ///
    /// # Errors
    /// When its first line is refused or it cannot be compiled.
    pub fn script(&self, scripts: &Scripts, body: &[u8], keep: bool) -> Result<Rc<Ready>, Error> {
        self.keep_up(scripts);
        let hash = rapidhash_v3(body);
        if let Some(ready) = self.compiled.borrow().by_text.get(&hash) {
            let same = ready.script.as_ref().is_some_and(|script| *script.body == *body);
            if same && !keep && in_use(scripts, ready) {
                return Ok(ready.clone());
            }
        }
        let sha = sha1_hex(body);
        let ready = self.script_of(scripts, sha, body, keep)?;
        self.compiled.borrow_mut().by_text.insert(hash, ready.clone());
        Ok(ready)
    }

    fn script_of(&self, scripts: &Scripts, sha: Sha, body: &[u8], keep: bool) -> Result<Rc<Ready>, Error> {
        let known = if keep { scripts.keep(&sha) } else { scripts.get(&sha) };
        if let Some(script) = known {
            return match self.compiled_as(scripts, &sha) {
                Some(ready) => Ok(ready),
                None => self.compile(script),
            };
        }
        let (flags, code_at) = flags::of_script(body)?;
        let (vm, number) = self.compile_text(&body[code_at..])?;
        let script = scripts.insert(Script::new(sha, body, flags, code_at, keep));
        Ok(self.add(script, vm, number))
    }

    fn compile(&self, script: Arc<Script>) -> Result<Rc<Ready>, Error> {
        let (vm, number) = self.compile_text(&script.body[script.code_at..])?;
        Ok(self.add(script, vm, number))
    }

    fn compile_text(&self, text: &[u8]) -> Result<(Rc<Vm>, usize), Error> {
        let vm = self.vm(Kind::Eval)?;
        let number = vm.compile(text);
        let number = number
            .map_err(|text| Error::err(format_args!("Error compiling script (new function): {text}")))?;
        Ok((vm, number))
    }

    fn add(&self, script: Arc<Script>, vm: Rc<Vm>, number: usize) -> Rc<Ready> {
        let (name, flags, sha) =
            (String::from_utf8_lossy(&script.sha).into_owned(), script.flags, script.sha);
        let ready = Rc::new(Ready { name, flags, script: Some(script), number, vm });
        let mut compiled = self.compiled.borrow_mut();
        if compiled.by_sha.len() >= compiled.look_at.max(COMPILED_MIN) {
            compiled.by_sha.retain(|_, ready| !ready.is_gone());
            compiled.by_text.retain(|_, ready| !ready.is_gone());
            compiled.look_at = 2 * compiled.by_sha.len();
        }
        compiled.by_sha.insert(sha, ready.clone());
        ready
    }
}

/// Whether a compiled script is still one; then it is used now.
fn in_use(scripts: &Scripts, ready: &Ready) -> bool {
    let Some(script) = ready.script.as_ref().filter(|script| !script.is_gone()) else { return false };
    scripts.touch(script);
    true
}

/// Functions.
impl Engine {
    /// Runs a library's code to learn its functions. It is not added to any registry; what `logs` and is loaded on
    /// other shards does so once.
    ///
    /// # Errors
    /// When its first line is refused, or by `check_name` its name, when it cannot be compiled, ends with an error or
    /// registers nothing.
    pub fn library(
        &self,
        code: &[u8],
        check_name: impl FnOnce(&str) -> Result<(), Error>,
    ) -> Result<Library, Error> {
        let load::Head { name, code_at } = load::head(code)?;
        check_name(&name)?;
        let (vm, registered) = self.load(&code[code_at..], true)?;
        // The functions were kept to be found out about; to call them they are loaded like anywhere else.
        registered.iter().for_each(|(_, number)| vm.release(*number));
        let functions: Vec<Function> = registered.into_iter().map(|(function, _)| function).collect();
        if functions.is_empty() {
            return Err(Error::err("No functions registered"));
        }
        Ok(Library { name, code: code.into(), code_at, functions })
    }

    fn load(&self, code: &[u8], logs: bool) -> Result<Registered, Error> {
        let vm = self.vm(Kind::Functions)?;
        let number = vm.compile(code);
        let number = number.map_err(|text| Error::err(format_args!("Error compiling function: {text}")))?;
        self.shared.loading.replace(Some(Loading::new(logs)));
        let loaded = vm.load_library(number);
        let registered = self.shared.loading.take().map(|loading| loading.functions).unwrap_or_default();
        vm.release(number);
        loaded.map_err(|text| Error::err(format_args!("Error registering functions: {text}")))?;
        let mut functions = Vec::new();
        for load::Registered { name, description, flags, callback } in registered {
            let number = vm.keep(callback).map_err(|error| no_state(&error))?;
            functions.push((Function { name, description, flags }, number));
        }
        Ok((vm, functions))
    }

    /// The function that FCALL names, in any case.
    pub fn function(&self, libraries: &Libraries, name: &[u8]) -> Option<Rc<Ready>> {
        if self.loaded.borrow().version != libraries.version() {
            self.load_all(libraries);
        }
        let loaded = self.loaded.borrow();
        let mut small = [0; 64];
        match small.get_mut(..name.len()) {
            Some(small) => {
                small.copy_from_slice(name);
                small.make_ascii_lowercase();
                loaded.functions.get(&*small).cloned()
            }
            None => loaded.functions.get(&*name.to_ascii_lowercase()).cloned(),
        }
    }

    /// Loads the libraries that are new and lets go those that are not there any more.
    fn load_all(&self, libraries: &Libraries) {
        let (version, all) = libraries.all();
        let mut old = self.loaded.take().libraries;
        let mut new = Loaded { version, ..Loaded::default() };
        if all.is_empty() && !self.running.get() {
            old.clear();
            self.functions.take();
        }
        for library in all {
            let known = old.iter().position(|(known, _)| Arc::ptr_eq(known, &library));
            let functions = match known {
                Some(at) => old.swap_remove(at).1,
                None => self.load_here(&library),
            };
            for function in &functions {
                new.functions.insert(function.name.to_ascii_lowercase().into_bytes(), function.clone());
            }
            new.libraries.push((library, functions));
        }
        self.loaded.replace(new);
    }

    fn load_here(&self, library: &Library) -> Vec<Rc<Ready>> {
        match self.load(&library.code[library.code_at..], false) {
            Ok((vm, functions)) => functions
                .into_iter()
                .map(|(Function { name, flags, .. }, number)| {
                    Rc::new(Ready { name, flags, script: None, number, vm: vm.clone() })
                })
                .collect(),
            Err(error) => {
                // It loaded on another shard, so this is for want of memory or time.
                log::line(
                    Level::Warning,
                    &format!("Library '{}' could not be loaded: {error}", library.name),
                );
                Vec::new()
            }
        }
    }
}

/// Running.
impl Engine {
    /// Runs a script or function: appends exactly one reply to `out`.
    pub fn run<'a>(
        &self,
        ready: &Ready,
        keys: impl Iterator<Item = &'a [u8]>,
        args: impl Iterator<Item = &'a [u8]>,
        bridge: &mut (dyn Bridge + '_),
        out: &mut Out,
    ) {
        if self.running.replace(true) {
            out.error(&Error::err("another script is running"));
            return;
        }
        self.shared.protocol.set(Protocol::Resp2);
        let call = || ready.vm.call(ready.number, keys, args);
        let ended = SHARED.set(&self.shared, || BRIDGE.set(&mut *bridge, call));
        let mut failed = |line: &[u8], counted| bridge.failed(line, counted);
        let mut answer = Answer::new(ready.vm.keys(), out, self.shared.protocol.get(), &mut failed);
        match &ended {
            Ok((true, value)) => answer.write(value),
            Ok((false, error)) => ready.failed(error, &mut answer),
            Err(error) => ready.not_run(&raise::text(error), &mut answer),
        }
        drop(ended);
        ready.vm.after_run();
        self.running.set(false);
    }
}

impl Ready {
    fn is_gone(&self) -> bool {
        self.script.as_ref().is_some_and(|script| script.is_gone())
    }

    /// Writes the error that a script ended with.
    fn failed(&self, error: &Value, answer: &mut Answer<'_>) {
        let Value::Table(error) = error else {
            let text =
                error.as_string().map_or("execution failure".to_string(), |text| text.to_string_lossy());
            return self.not_run(&text, answer);
        };
        let text = |key: &str| self.vm.text_of(&error.get::<Value>(key).ok()?);
        let mut line = answer::line(&text("err").unwrap_or_else(|| b"ERR unknown error".to_vec()));
        if let (Some(source), Some(number)) = (text("source"), text("line")) {
            line.extend_from_slice(format!(" script: {}, on ", self.name).as_bytes());
            line.extend_from_slice(&source);
            line.push(b':');
            line.extend_from_slice(&number);
            line.push(b'.');
        }
        let counted = matches!(error.get("ignore_error_stats_update"), Ok(Value::Boolean(true)));
        answer.error_line(&line, counted);
    }

    /// Writes the error of a script that Lua gave up.
    fn not_run(&self, why: &str, answer: &mut Answer<'_>) {
        let why: String = why.chars().take(100).collect();
        answer.error_line(format!("ERR Error running script {}, {why}", self.name).as_bytes(), false);
    }
}
