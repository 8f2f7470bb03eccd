//! All rows of all families.
use crate::cmd;
use crate::cmd::spec::Spec;
use crate::cmd::table::{Table, install};

/// The families, in the order of COMMAND.
pub fn families() -> Vec<&'static [Spec]> {
    vec![cmd::generic::COMMANDS, cmd::string::COMMANDS, cmd::bitmap::COMMANDS]
}

/// Assembles the process's table.
pub fn assemble() -> &'static Table {
    install(&families())
}
