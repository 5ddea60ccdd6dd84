//! What an element may do while it runs.

use super::{Outcome, World, find};
use crate::element::Element;
use crate::language::Port;
use crate::packet::Packet;

/// The element that runs, and everything around it.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub(super) world: &'a World,
    pub(super) id: usize,
}

impl Context<'_> {
    /// The time, nanoseconds.
    #[must_use]
    pub fn now(&self) -> i64 {
        self.world.now.get()
    }

    /// Pushes a packet out of a port; it is delivered when the element returns. Where nothing is connected it ends.
    pub fn push(&self, port: usize, packet: Packet) {
        let from = Port {
            element: self.id,
            port,
        };
        if self.world.target(from).is_none() {
            return self.drop(packet);
        }
        let mut pending = self.world.pending.borrow_mut();
        if pending.len() >= self.world.bounds.packets {
            self.world
                .fail(&format!("more than {} packets under way", pending.len()));
            return;
        }
        pending.push((from, packet));
    }

    /// Asks for a packet at an input.
    #[must_use]
    pub fn pull(&self, port: usize) -> Option<Packet> {
        let to = Port {
            element: self.id,
            port,
        };
        self.world.pull(to)
    }

    /// Asks for a packet at input 0 and gives it to `take`; whether there was one.
    pub fn pull_into(&self, take: impl FnOnce(Packet)) -> bool {
        self.pull(0).map(take).is_some()
    }

    /// Ends a packet.
    pub fn drop(&self, packet: Packet) {
        self.end(packet, false);
    }

    /// A packet leaves the configuration.
    pub fn leave(&self, packet: Packet) {
        self.end(packet, true);
    }

    fn end(&self, packet: Packet, left: bool) {
        if let Some(count) = self.world.counts.borrow_mut().get_mut(self.id) {
            count.dropped += u64::from(!left);
        }
        if let Some(outcomes) = self.world.outcomes.borrow_mut().as_mut() {
            outcomes.push(Outcome {
                element: self.id,
                left,
                packet,
            });
        }
    }

    /// Pushes a packet out of a port, or ends it.
    pub fn reject(&self, port: usize, packet: Packet) {
        self.push(port, packet);
    }

    /// Whether an output is connected.
    #[must_use]
    pub fn connected(&self, port: usize) -> bool {
        let from = Port {
            element: self.id,
            port,
        };
        self.world.target(from).is_some()
    }

    /// How many outputs are connected, up to the highest.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.world.targets.get(self.id).map_or(0, Vec::len)
    }

    /// How many inputs are connected, up to the highest.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.world.sources.get(self.id).map_or(0, Vec::len)
    }

    /// A message about the element's configuration, with its place.
    pub fn note_configuring(&self, text: &str) {
        if let Some(flat) = self.title_of(self.id) {
            let place = &flat.place;
            self.note(&format!(
                "{place}: While configuring '{}':\n  {text}\n",
                flat.title()
            ));
        }
    }

    /// Sets the timer of the element, nanoseconds.
    pub fn wake_at(&self, time: i64) {
        self.world.wake(self.id, Some(time));
    }

    /// Stops the timer.
    pub fn sleep(&self) {
        self.world.wake(self.id, None);
    }

    /// Asks the driver to stop.
    pub fn stop(&self) {
        self.world.stop.set(true);
    }

    /// Ends the run at once.
    pub fn end_run(&self) {
        self.world.stop.set(true);
        self.world.over.set(true);
    }

    /// Whether the run ends.
    #[must_use]
    pub fn stopping(&self) -> bool {
        self.world.stop.get()
    }

    /// Whether a queue that the element fills is full.
    #[must_use]
    pub fn blocked(&self) -> bool {
        let queues = self.world.fills.get(self.id).map_or(&[][..], Vec::as_slice);
        let full = |id: &usize| {
            let element = self.world.elements.get(*id);
            let room = element.and_then(|e| e.try_borrow().ok()?.room());
            room == Some(0)
        };
        !queues.is_empty() && queues.iter().all(full)
    }

    /// The element's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.title_of(self.id).map_or("", |e| &e.name)
    }

    /// `NAME :: CLASS`.
    #[must_use]
    pub fn title(&self) -> String {
        self.title_of(self.id)
            .map_or_else(String::new, crate::language::Element::title)
    }

    fn title_of(&self, id: usize) -> Option<&crate::language::Element> {
        self.world.graph.elements.get(id)
    }

    /// Text for standard error.
    pub fn note(&self, text: &str) {
        self.world.host.borrow_mut().note(text.as_bytes());
    }

    /// Writes a file, or adds to it.
    ///
    /// # Errors
    /// Why not.
    pub fn file(&self, path: &str, bytes: &[u8], append: bool) -> Result<(), String> {
        self.world.host.borrow_mut().write(path, bytes, append)
    }

    /// A file's content.
    ///
    /// # Errors
    /// Why not.
    pub fn content(&self, path: &str) -> Result<Vec<u8>, String> {
        self.world.host.borrow_mut().read(path)
    }

    /// A random number; the sequence is the same in every run.
    #[must_use]
    pub fn random(&self) -> u32 {
        // xorshift64* (Marsaglia, Xorshift RNGs, 2003; Vigna, 2016).
        let mut x = self.world.random.get();
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.world.random.set(x);
        (x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
    }

    /// Counts some work against the bound of the run; whether there may be more.
    #[must_use]
    pub fn spend(&self, steps: u64) -> bool {
        self.world.spend(steps)
    }

    /// Names of addresses, as the element sees them.
    #[must_use]
    pub fn names(&self) -> crate::names::Names {
        let element = self.world.graph.elements.get(self.id);
        self.world.names.seen_by(element.map_or("", |e| &e.name))
    }

    /// Calls another element; none if it runs already.
    pub fn with<T>(
        &self,
        id: usize,
        call: impl FnOnce(&mut dyn Element, &Context<'_>) -> T,
    ) -> Option<T> {
        let element = self.world.elements.get(id)?;
        let mut element = element.try_borrow_mut().ok()?;
        let cx = Context {
            world: self.world,
            id,
        };
        Some(call(element.as_mut(), &cx))
    }

    /// The number of the element that a name means here.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<usize> {
        find(&self.world.graph, self.id, name)
    }

    fn deeper<T>(&self, call: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        let depth = self.world.depth.get();
        if depth >= self.world.bounds.depth {
            return Err(format!("more than {depth} handlers within each other"));
        }
        self.world.depth.set(depth + 1);
        let done = call();
        self.world.depth.set(depth);
        done
    }

    /// Reads `ELEMENT.HANDLER`, or a handler of the whole configuration.
    ///
    /// # Errors
    /// There is none, or what it says.
    pub fn read(&self, name: &str, argument: &str) -> Result<String, String> {
        self.deeper(|| {
            let Some((element, handler)) = name.rsplit_once('.') else {
                return self.world.global(name);
            };
            let id = self
                .find(element)
                .ok_or_else(|| format!("no element named '{element}'"))?;
            let own = self.with(id, |e, cx| e.read(handler, argument, cx));
            let own = own.ok_or_else(|| format!("'{element}' is running"))?;
            let flat = self.title_of(id);
            match (own, handler, flat) {
                (Some(answer), ..) => answer,
                (None, "name", Some(flat)) => Ok(flat.name.clone()),
                (None, "class", Some(flat)) => Ok(flat.class.clone()),
                (None, "config", Some(flat)) => Ok(flat.config.trim().to_owned()),
                _ => Err(format!("no '{name}' read handler")),
            }
        })
    }

    /// Writes a handler.
    ///
    /// # Errors
    /// As [`Context::read`].
    pub fn write(&self, name: &str, value: &str) -> Result<(), String> {
        self.deeper(|| {
            let Some((element, handler)) = name.rsplit_once('.') else {
                return match name {
                    "stop" => {
                        self.stop();
                        Ok(())
                    }
                    _ => Err(format!("no '{name}' write handler")),
                };
            };
            let id = self
                .find(element)
                .ok_or_else(|| format!("no element named '{element}'"))?;
            let own = self.with(id, |e, cx| e.write(handler, value, cx));
            let own = own.ok_or_else(|| format!("'{element}' is running"))?;
            own.unwrap_or_else(|| Err(format!("no '{name}' write handler")))
        })
    }
}
