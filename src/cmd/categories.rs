//! The ACL categories of a row: most follow from its group and its flags.
use super::spec::{Group, Handler, Spec, flag};

/// The ACL categories, in the order in which they are printed.
pub const CATEGORIES: &[&str] = &[
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
];

impl Spec {
    /// ACL categories: those of the group and of the flags, and the row's own.
    pub fn all_categories(&self) -> Vec<&'static str> {
        let mut all = self.categories.to_vec();
        let mut add = |name: &'static str| {
            if !name.is_empty() && !all.contains(&name) {
                all.push(name);
            }
        };
        let has = |bit| self.flags & bit != 0;
        // What works on the values of some types belongs to these and not to the keyspace.
        let typed = self.group == Group::Generic && self.categories.contains(&"list");
        if !typed && !matches!(self.handler, Handler::Container) {
            add(self.group.category());
        }
        if has(flag::WRITE) {
            add("write");
        }
        if has(flag::READONLY) && !self.categories.contains(&"scripting") {
            add("read");
        }
        if has(flag::ADMIN) {
            add("admin");
            add("dangerous");
        }
        if has(flag::PUBSUB) {
            add("pubsub");
        }
        if has(flag::BLOCKING) {
            add("blocking");
        }
        if has(flag::FAST) {
            add("fast");
        } else {
            add("slow");
        }
        all.sort_by_key(|name| CATEGORIES.iter().position(|known| known == name));
        all
    }
}
