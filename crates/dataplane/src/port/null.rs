//! `null:`: takes everything and keeps nothing, for measuring and for functions that only look.

use millrace_traffic::capture::Written;

use super::{Kind, Output, PortError};

/// The sink.
pub const KIND: Kind = Kind {
    scheme: "null",
    form: "null:",
    what: "a sink that keeps nothing",
    input: None,
    output: Some(create),
    live: None,
    spelled: |_| Ok(()),
};

#[derive(Default)]
struct Null(Written);

fn create(_word: &str, _ports: &[&str]) -> Result<Box<dyn Output>, PortError> {
    Ok(Box::new(Null::default()))
}

impl Output for Null {
    fn write(
        &mut self,
        _port: u32,
        _stamp: u64,
        _wire: u32,
        frame: &[u8],
    ) -> Result<(), PortError> {
        self.0.packets += 1;
        self.0.bytes += frame.len() as u64;
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Written, PortError> {
        Ok(self.0)
    }

    fn written(&self) -> Written {
        self.0
    }

    fn bytes(&self) -> u64 {
        0
    }
}
