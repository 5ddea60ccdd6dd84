//! Which ports of two lists of elements are connected.

use super::parse::{Item, Parser, Ports};
use super::scope::Connection;
use crate::error::Place;

impl Parser<'_> {
    /// Connects two lists: one to one, one to all, or side by side with `=>`.
    pub(super) fn connect(&mut self, from: &[Item], to: &[Item], double: bool, place: &Place) {
        let outputs: Vec<_> = from.iter().map(|i| (i.end(false), &i.outputs)).collect();
        let inputs: Vec<_> = to.iter().map(|i| (i.end(true), &i.inputs)).collect();
        let least = |side: &[(usize, &Ports)]| -> usize {
            side.iter().map(|(_, p)| p.given.len().max(1)).sum()
        };
        let open = |side: &[(usize, &Ports)]| side.iter().filter(|(_, p)| p.open).count();
        let (least_out, least_in) = (least(&outputs), least(&inputs));
        let (mut open_out, mut open_in) = (open(&outputs) > 0, open(&inputs) > 0);
        if open(&outputs) + open(&inputs) > 1 {
            self.wrong(
                place,
                "at most one expandable port allowed per connection",
                "number the ports of all others",
            );
            return;
        }
        // With `=>` a single element without ports has as many as the other side needs.
        let bare = |side: &[(usize, &Ports)]| matches!(side, [(_, p)] if !p.written);
        open_out |= double && least_in > 1 && bare(&outputs);
        open_in |= double && least_out > 1 && bare(&inputs);
        let (many_out, many_in) = (least_out > 1 || open_out, least_in > 1 || open_in);
        if many_out && many_in && !double {
            self.wrong(
                place,
                "syntax error: many-to-many connections require `=>`",
                "write `=>` to connect the ports of both sides one by one",
            );
            return;
        }
        let (want_out, want_in) = match (many_out, many_in) {
            (true, true) => (least_out.max(least_in), least_in.max(least_out)),
            (true, false) => (least_out, least_out),
            (false, true) => (least_in, least_in),
            (false, false) => (1, 1),
        };
        let short = |want: usize, least: usize, open: bool| want > least && !open;
        if many_out
            && many_in
            && (short(want_out, least_out, open_out) || short(want_in, least_in, open_in))
        {
            self.wrong(
                place,
                format!("connection mismatch: {least_out} outputs connected to {least_in} inputs"),
                "give both sides as many ports",
            );
            return;
        }
        let out = spread(&outputs, want_out, least_out, open_out);
        let into = spread(&inputs, want_in, least_in, open_in);
        let limit = self.limits.connections;
        let scope = &mut self.level().scope;
        if scope.connections.len() + out.len() > limit {
            let what = format!("more than {limit} connections");
            self.wrong(place, what, "split the configuration");
            return;
        }
        for (from, to) in out.into_iter().zip(into) {
            let place = place.clone();
            scope.connections.push(Connection { from, to, place });
        }
    }
}

/// The ports of a side, `want` of them: an open list goes on, a single port is repeated.
fn spread(side: &[(usize, &Ports)], want: usize, least: usize, open: bool) -> Vec<(usize, usize)> {
    let mut all = Vec::new();
    let mut extra = if open { want.saturating_sub(least) } else { 0 };
    let lone = side.len() == 1;
    for (element, ports) in side {
        let mut next = 0;
        for port in &ports.given {
            all.push((*element, *port));
            next = port + 1;
        }
        if ports.given.is_empty() {
            all.push((*element, 0));
            next = 1;
        }
        if open && (ports.open || (lone && !ports.written)) {
            for _ in 0..std::mem::take(&mut extra) {
                all.push((*element, next));
                next += 1;
            }
        }
    }
    if let (1, Some(&only)) = (all.len(), all.first()) {
        all.resize(want, only);
    }
    all
}
