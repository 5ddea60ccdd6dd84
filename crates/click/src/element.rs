//! What an element is: a state machine that packets are pushed into or pulled from.

use crate::arguments::Args;
use crate::interpreter::{Context, Setup};
use crate::packet::Packet;

/// A class of elements.
pub struct Class {
    /// its name in configurations
    pub name: &'static str,
    /// inputs and outputs, as Click writes them: `1/1-2`, `-/1`
    pub ports: &'static str,
    /// push (`h`), pull (`l`) or agnostic (`a`) of inputs and outputs; the last letter holds for all further ports
    pub processing: &'static str,
    /// makes one from its arguments
    pub make: Make,
}

impl Class {
    /// A class with its fields in their order.
    #[must_use]
    pub const fn new(
        name: &'static str,
        ports: &'static str,
        processing: &'static str,
        make: Make,
    ) -> Self {
        Self {
            name,
            ports,
            processing,
            make,
        }
    }
}

/// Makes an element from its arguments.
pub type Make = fn(&mut Args<'_>, &mut Setup<'_>) -> Made;
/// An element, or what is wrong with its arguments.
pub type Made = Result<Box<dyn Element>, String>;
/// An answer of a write handler: none if there is no such handler.
pub type Written = Option<Result<(), String>>;
/// An answer of a read handler: none if there is no such handler.
pub type Read = Option<Result<String, String>>;

/// One element.
pub trait Element {
    /// What it does to a packet on its way from input 0 to output 0; none if the packet goes elsewhere
    /// ([`Context::push`], [`Context::drop`]).
    fn action(&mut self, packet: Packet, cx: &Context<'_>) -> Option<Packet> {
        let _ = cx;
        Some(packet)
    }

    /// A packet comes in. What is pushed is delivered when this returns, in its order.
    fn push(&mut self, port: usize, packet: Packet, cx: &Context<'_>) {
        let _ = port;
        if let Some(packet) = self.action(packet, cx) {
            cx.push(0, packet);
        }
    }

    /// A packet is asked for.
    fn pull(&mut self, port: usize, cx: &Context<'_>) -> Option<Packet> {
        let _ = port;
        cx.pull(0).and_then(|packet| self.action(packet, cx))
    }

    /// Before the first packet.
    ///
    /// # Errors
    /// What is wrong.
    fn start(&mut self, cx: &Context<'_>) -> Result<(), String> {
        let _ = cx;
        Ok(())
    }

    /// Runs once in each round of the scheduler; whether there was something to do. None: it has no task.
    fn task(&mut self, cx: &Context<'_>) -> Option<bool> {
        let _ = cx;
        None
    }

    /// The time has come that it set ([`Context::wake_at`]).
    fn timer(&mut self, cx: &Context<'_>) {
        let _ = cx;
    }

    /// At the end of a run: files are written.
    fn finish(&mut self, cx: &Context<'_>) {
        let _ = cx;
    }

    /// The driver was asked to stop; whether the element lets it go on.
    fn stopping(&mut self, cx: &Context<'_>) -> bool {
        let _ = cx;
        false
    }

    /// A read handler, with its argument.
    fn read(&mut self, name: &str, argument: &str, cx: &Context<'_>) -> Read {
        let _ = (name, argument, cx);
        None
    }

    /// A write handler.
    fn write(&mut self, name: &str, value: &str, cx: &Context<'_>) -> Written {
        let _ = (name, value, cx);
        None
    }

    /// For a queue: packets that it can still take.
    fn room(&self) -> Option<usize> {
        None
    }

    /// What it does to packets, for synthesis; none if it does more than to its packets.
    fn meaning(&self) -> Option<crate::meaning::Meaning> {
        None
    }

    /// For a rewriter, which another one's arguments may name.
    fn rewriter(&mut self) -> Option<&mut crate::rewriter::Rewriter> {
        None
    }

    /// For a mapper: the pattern of the next new flow.
    fn mapper(&mut self) -> Option<&mut crate::rewriter::Mapper> {
        None
    }
}
