//! Indirection tables of devices, which are changed with the class that moves.
//!
//! When a class has its new worker, what the device receives of it should come there without a detour. So the device's table is changed
//! then; what the device had received before lies in the queue of the worker that it was, which hands it over. Until that
//! queue has been seen empty behind the change, and the new worker has taken what it was handed, the new worker's queue holds
//! packets of the class, so that they stay in order.

use std::sync::Arc;

use super::{Inside, Member};

/// The table of a device, which leads from a class to a queue, while packets come.
pub trait Indirection: Send + Sync {
    /// The queue that packets of a class come to.
    fn queue(&self, class: u16) -> usize;

    /// Has packets of a class come to a queue from now on. The number of this change.
    fn point(&self, class: u16, queue: usize) -> u64;

    /// Whether what comes from now on comes by the table as it was behind a change.
    fn applies(&self, change: u64) -> bool;
}

/// A queue that may still have packets of a class which its device brings elsewhere by now.
pub(super) struct Turned {
    /// the queue
    pub member: usize,
    /// the queue that packets come to now, of the same port
    pub to: usize,
    /// of the device's table
    pub change: u64,
    /// it was empty behind the change: what it had handed to the new worker by then
    pub mark: Option<u64>,
    /// the new worker has taken that
    pub over: bool,
}

/// What a queue that is turned away from looks out for.
#[derive(Clone)]
pub struct Leaving {
    /// of its device
    pub table: Arc<dyn Indirection>,
    /// that has to apply
    pub change: u64,
}

/// Has the devices of all ports bring a class to a worker; queues that may have packets of it.
pub(super) fn turn(members: &[Member], class: u16, to: usize) -> Vec<Turned> {
    let mut turned = Vec::new();
    for (own, member) in members.iter().enumerate() {
        // By the member of the worker that the class goes to.
        let Some(table) = member.table.as_ref().filter(|_| member.worker == to) else {
            continue;
        };
        let before = table.queue(class);
        let beside = |m: &Member| m.port == member.port && m.worker == before;
        if before == to {
            continue;
        }
        let change = table.point(class, to);
        // A queue that does not take part has ended, or is none of these workers': nothing comes from it.
        if let Some(at) = members.iter().position(beside) {
            turned.push(Turned {
                member: at,
                to: own,
                change,
                mark: None,
                over: false,
            });
        }
    }
    turned
}

impl Inside {
    /// What a queue is to look out for while a class settles.
    pub(super) fn leaving(&self, member: usize) -> Option<Leaving> {
        let moving = self.moving.as_ref()?;
        let turned = moving.turned.iter().find(|t| t.member == member)?;
        if turned.mark.is_some() {
            return None;
        }
        let table = self.members.get(member)?.table.clone()?;
        Some(Leaving {
            table,
            change: turned.change,
        })
    }
}
