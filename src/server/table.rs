//! All rows of all families.
use crate::cmd::spec::Spec;
use crate::{admin, cmd, conn, obs, persist, pubsub, script};

use crate::cmd::table::{Table, install};

/// The families, in the order of COMMAND.
pub fn families() -> Vec<&'static [Spec]> {
    vec![
        cmd::generic::COMMANDS,
        cmd::string::COMMANDS,
        cmd::bitmap::COMMANDS,
        cmd::list::COMMANDS,
        cmd::hash::COMMANDS,
        cmd::hyperloglog::COMMANDS,
        cmd::set::COMMANDS,
        cmd::sorted_set::COMMANDS,
        cmd::geo::COMMANDS,
        cmd::stream::COMMANDS,
        cmd::transaction::COMMANDS,
        cmd::waiting::COMMANDS,
        pubsub::COMMANDS,
        script::commands::COMMANDS,
        script::functions::COMMANDS,
        persist::aof::commands::COMMANDS,
        conn::commands::COMMANDS,
        conn::client_commands::COMMANDS,
        persist::commands::COMMANDS,
        persist::background::COMMANDS,
        obs::command::COMMANDS,
        obs::info::COMMANDS,
        obs::latency::COMMANDS,
        obs::slow_log::COMMANDS,
        admin::server::COMMANDS,
        admin::config::COMMANDS,
        admin::memory::COMMANDS,
        admin::module::COMMANDS,
        admin::debug::COMMANDS,
    ]
}

/// Assembles the process's table.
pub fn assemble() -> &'static Table {
    install(&families())
}

#[cfg(test)]
mod tests {
    #[test]
    fn rows_keep_the_laws() {
        let table = super::assemble();
        assert_eq!(crate::cmd::laws::check_rows(table.rows()), Vec::<String>::new());
    }
}
