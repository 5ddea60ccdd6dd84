//! `Paint(COLOUR [, ANNO])`: sets the colour annotation. `CheckPaint(COLOUR)`: packets of the colour to output 0, others to output 1
//! or dropped. `PaintTee(COLOUR)`: packets of the colour are copied to output 1. `PaintSwitch([ANNO])`: the output is the colour;
//! packets of the colour 255 are copied to all.
//!
//! Handlers: `color` (also written).

use super::prelude::*;
use crate::packet::PAINT;

/// The classes of this file.
pub const CLASSES: &[Class] = &[
    Class::new("Paint", "1/1", "a/a", |args, _| paint(args, What::Set)),
    Class::new("CheckPaint", "1/1-2", "a/ah", |args, _| {
        paint(args, What::Check)
    }),
    Class::new("PaintTee", "1/2", "a/ah", |args, _| paint(args, What::Tee)),
    Class::new("PaintSwitch", "1/-", "h/h", switch),
];

fn switch(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("ANNO");
    let at = args.annotation("ANNO", PAINT, 1)?;
    args.done()?;
    Ok(Box::new(Switch(at)))
}

fn paint(args: &mut Args<'_>, what: What) -> Made {
    args.keywords("COLOR ANNO");
    let colour = args.number("COLOR", 0)?;
    let at = args.annotation("ANNO", PAINT, 1)?;
    args.done()?;
    let colour = u8::try_from(colour).map_err(|_| "COLOR: a number from 0 to 255")?;
    Ok(Box::new(Paint { what, colour, at }))
}

enum What {
    Set,
    Check,
    Tee,
}

struct Paint {
    what: What,
    colour: u8,
    at: usize,
}

impl Element for Paint {
    fn meaning(&self) -> Option<Meaning> {
        Some(match self.what {
            What::Set => Meaning::Paint(self.at, self.colour),
            What::Check => Meaning::CheckPaint(self.at, self.colour),
            What::Tee => Meaning::PaintTee(self.at, self.colour),
        })
    }

    fn action(&mut self, mut packet: Packet, cx: &Context<'_>) -> Option<Packet> {
        let same = packet.anno[self.at] == self.colour;
        match self.what {
            What::Set => packet.anno[self.at] = self.colour,
            What::Check if !same => {
                cx.reject(1, packet);
                return None;
            }
            What::Tee if same => cx.push(1, packet.clone()),
            _ => {}
        }
        Some(packet)
    }

    fn read(&mut self, name: &str, _: &str, _: &Context<'_>) -> Read {
        (name == "color").then(|| Ok(self.colour.to_string()))
    }

    fn write(&mut self, name: &str, value: &str, _: &Context<'_>) -> Written {
        (name == "color").then(|| match value.trim().parse() {
            Ok(colour) => {
                self.colour = colour;
                Ok(())
            }
            Err(_) => Err(format!("bad colour '{value}'")),
        })
    }
}

struct Switch(usize);

impl Element for Switch {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::PaintSwitch(self.0))
    }

    fn push(&mut self, _: usize, packet: Packet, cx: &Context<'_>) {
        match packet.anno[self.0] {
            255 => {
                for port in 0..cx.outputs() {
                    cx.push(port, packet.clone());
                }
            }
            colour => cx.push(usize::from(colour), packet),
        }
    }
}
