//! Which elements LMPOP and ZMPOP, and their kin that wait, take: some from an end of the first key that has any.
use smallvec::SmallVec;

use crate::wire::{Args, Error, Key};

/// `numkeys key [key ...] end [COUNT count]`
pub struct Popping<'a, E> {
    /// The keys, in the order in which they are tried.
    pub keys: SmallVec<[Key<'a>; 4]>,
    /// The end at which elements are taken.
    pub end: E,
    /// How many are taken at most; not 0.
    pub count: usize,
}

impl<'a, E> Popping<'a, E> {
    /// From the arguments, all of them; `end` takes the word that says which end.
    ///
    /// # Errors
    /// They do not have this form, or a number is out of range.
    pub fn of(
        args: &mut Args<'a>,
        end: impl FnOnce(&mut Args<'a>) -> Result<E, Error>,
    ) -> Result<Popping<'a, E>, Error> {
        let keys = args.int_from(1, "numkeys should be greater than 0")?;
        if keys >= args.left() {
            return Err(Error::Syntax);
        }
        let keys = args.keys(keys).collect();
        let end = end(args)?;
        let mut count = None;
        while !args.is_done() {
            if count.is_some() || args.left() < 2 || !args.keyword("COUNT") {
                return Err(Error::Syntax);
            }
            count = Some(args.int_from(1, "count should be greater than 0")?);
        }
        Ok(Popping { keys, end, count: count.unwrap_or(1) })
    }
}
