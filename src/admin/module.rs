//! MODULE: this server loads no modules, and says so as Redis does of one without any.
use crate::cmd::cx::ConnCx;
use crate::cmd::docs;
use crate::cmd::spec::{Done, Group::Server as S, Spec, flag};
use crate::wire::{Args, Error, Out};

const FLAGS: u32 = flag::ADMIN | flag::NOSCRIPT;

/// The rows.
pub const COMMANDS: &[Spec] =
    &[Spec::container("module", SUBCOMMANDS).doc(S, "4.0.0", "Holds the commands about modules.")];

const SUBCOMMANDS: &[Spec] = &[
    Spec::conn("module|help", "", help).doc(S, "5.0.0", "Tells what each subcommand does."),
    Spec::conn("module|list", "", list)
        .doc(S, "4.0.0", "Lists the modules: none.")
        .cost("O(N) where N is the number of modules.")
        .without(flag::LOADING | flag::STALE)
        .with(FLAGS)
        .tips(&["nondeterministic_output_order"]),
    Spec::conn("module|load", "path [arg [arg ...]]", load)
        .doc(S, "4.0.0", "Would load a module.")
        .without(flag::LOADING | flag::STALE)
        .with(FLAGS | flag::PROTECTED | flag::NO_ASYNC_LOADING),
    Spec::conn(
        "module|loadex",
        "path [CONFIG name value [CONFIG name value ...]] [ARGS args [args ...]]",
        load,
    )
    .doc(S, "7.0.0", "Would load a module with parameters.")
    .without(flag::LOADING | flag::STALE)
    .with(FLAGS | flag::PROTECTED | flag::NO_ASYNC_LOADING),
    Spec::conn("module|unload", "name", unload)
        .doc(S, "4.0.0", "Would unload a module.")
        .without(flag::LOADING | flag::STALE)
        .with(FLAGS | flag::PROTECTED | flag::NO_ASYNC_LOADING),
];

fn help(_: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    docs::help("module", out);
    Ok(())
}

fn list(_: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    out.array(0);
    Ok(())
}

fn load(_: &mut ConnCx<'_>, _: &mut Args<'_>, _: &mut Out) -> Done {
    Err(Error::err("Error loading the extension. Please check the server logs."))
}

fn unload(_: &mut ConnCx<'_>, _: &mut Args<'_>, _: &mut Out) -> Done {
    Err(Error::err("Error unloading module: no such module with that name"))
}
