//! `Null`: passes packets on. `PushNull` and `PullNull` decide which way; so do the others of this file, which have no
//! meaning where one packet runs after the other: `Pipeliner`, `PathSpinlock`, `SpinlockAcquire`, `SpinlockRelease`.

use crate::arguments::Args;
use crate::element::{Class, Element, Made};
use crate::interpreter::Setup;
use crate::meaning::Meaning;

/// Null
pub const CLASS: Class = Class {
    name: "Null",
    ports: "1/1",
    processing: "a/a",
    make,
};

/// PushNull
pub const PUSH: Class = Class {
    name: "PushNull",
    ports: "1/1",
    processing: "h/h",
    make,
};

/// PullNull
pub const PULL: Class = Class {
    name: "PullNull",
    ports: "1/1",
    processing: "l/l",
    make,
};

/// PathSpinlock
pub const LOCK: Class = Class {
    name: "PathSpinlock",
    ports: "1/1",
    processing: "a/a",
    make,
};

/// SpinlockAcquire
pub const ACQUIRE: Class = Class {
    name: "SpinlockAcquire",
    ports: "1/1",
    processing: "a/a",
    make,
};

/// SpinlockRelease
pub const RELEASE: Class = Class {
    name: "SpinlockRelease",
    ports: "1/1",
    processing: "a/a",
    make,
};

/// Pipeliner
pub const PIPELINER: Class = Class {
    name: "Pipeliner",
    ports: "1/1",
    processing: "a/a",
    make,
};

/// Align
pub const ALIGN: Class = Class {
    name: "Align",
    ports: "1/1",
    processing: "a/a",
    make,
};

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
