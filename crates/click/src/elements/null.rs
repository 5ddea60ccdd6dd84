//! `Null`: passes packets on. `PushNull` and `PullNull` decide which way; so do the others of this file, which have no
//! meaning where one packet runs after the other: `Pipeliner`, `PathSpinlock`, `SpinlockAcquire`, `SpinlockRelease`.

use super::prelude::*;

/// The classes of this file.
pub const CLASSES: &[Class] = &[
    Class::new("Null", "1/1", "a/a", make),
    Class::new("PushNull", "1/1", "h/h", make),
    Class::new("PullNull", "1/1", "l/l", make),
    Class::new("PathSpinlock", "1/1", "a/a", make),
    Class::new("SpinlockAcquire", "1/1", "a/a", make),
    Class::new("SpinlockRelease", "1/1", "a/a", make),
    Class::new("Pipeliner", "1/1", "a/a", make),
    Class::new("Align", "1/1", "a/a", make),
];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.all();
    Ok(Box::new(Null))
}

struct Null;

impl Element for Null {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Pass)
    }
}
