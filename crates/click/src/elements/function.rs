//! `Function(NAME)`: a function of another dialect, a handler or an XDP program, as an element; packets that it sends out by a port leave by
//! the output of that number, and those that it passes to the host by the last one. Who runs the graph knows the function by its name.
//!
//! `Host`: packets are given to the network stack of the host.
//!
//! Both are Millrace's own: where neighbours in a chain file become one configuration, the first stands for a function without state.

use super::prelude::*;

/// The classes of this file.
pub const CLASSES: &[Class] = &[
    Class::new("Function", "-/-", "h/h", make),
    Class::new("Host", "1/0", "h/h", host),
];

fn make(args: &mut Args<'_>, setup: &mut Setup<'_>) -> Made {
    let name = args.take("NAME").ok_or("it names no function")?;
    args.done()?;
    let name = crate::language::args::text(&name);
    let found = setup.element(&name);
    found
        .ok_or_else(|| format!("there is no function '{name}' here: name its file in a chain file"))
}

fn host(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.done()?;
    Ok(Box::new(Host))
}

struct Host;

impl Element for Host {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Host)
    }

    fn push(&mut self, _: usize, packet: Packet, cx: &Context<'_>) {
        cx.leave(packet);
    }
}
