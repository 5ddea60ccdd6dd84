//! `Switch([OUTPUT])`: all packets to one output, 0; -1 drops them. `StaticSwitch` alike. `PullSwitch([INPUT])`,
//! `StaticPullSwitch`, `SimplePullSwitch`: packets are pulled from one input.
//!
//! Handlers: `switch` (also written).

use super::prelude::*;

/// The classes of this file.
pub const CLASSES: &[Class] = &[
    Class::new("Switch", "1/-", "h/h", make),
    Class::new("StaticSwitch", "1/-", "h/h", make),
    Class::new("PullSwitch", "-/1", "l/l", make),
    Class::new("SimplePullSwitch", "-/1", "l/l", make),
    Class::new("StaticPullSwitch", "-/1", "l/l", make),
];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("OUTPUT INPUT");
    let given = args.keyword("INPUT");
    let port = match given {
        Some(text) => crate::arguments::integer(&text).ok_or("bad port")?,
        None => args.number("OUTPUT", 0)?,
    };
    args.done()?;
    Ok(Box::new(Switch(usize::try_from(port).ok())))
}

struct Switch(Option<usize>);

impl Element for Switch {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Switch(self.0))
    }

    fn push(&mut self, _: usize, packet: Packet, cx: &Context<'_>) {
        match self.0 {
            Some(port) => cx.push(port, packet),
            None => cx.drop(packet),
        }
    }

    fn pull(&mut self, _: usize, cx: &Context<'_>) -> Option<Packet> {
        cx.pull(self.0?)
    }

    fn read(&mut self, name: &str, _: &str, _: &Context<'_>) -> Read {
        (name == "switch").then(|| Ok(self.0.map_or("-1".into(), |p| p.to_string())))
    }

    fn write(&mut self, name: &str, value: &str, _: &Context<'_>) -> Written {
        (name == "switch").then(|| match value.trim().parse::<i64>() {
            Ok(port) => {
                self.0 = usize::try_from(port).ok();
                Ok(())
            }
            Err(_) => Err(format!("bad port '{value}'")),
        })
    }
}
