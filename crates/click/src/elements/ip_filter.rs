//! `IPFilter(ACTION CONDITION, …)`: the first condition that holds says what happens: `allow` (output 0), a number (that output),
//! `deny` or `drop` (dropped). Without one the packet is dropped. `IPClassifier(CONDITION, …)`: the output is the condition's number.
//! `file NAME` in place of a rule reads rules, one a line. The language: `filter/mod.rs`.

use super::prelude::*;
use crate::filter::{Condition, parse};
use crate::language::args::{first_word, text};

/// The classes of this file.
pub const CLASSES: &[Class] = &[
    Class::new("IPFilter", "1/-", "h/h", |args, setup| {
        rules(args, setup, true)
    }),
    Class::new("IPClassifier", "1/-", "h/h", |args, setup| {
        rules(args, setup, false)
    }),
];

/// Rules of one element, at most: half a GiB of them when they are read and one diagram is made.
const MOST: usize = 1 << 17;

fn rules(args: &mut Args<'_>, setup: &mut Setup<'_>, actions: bool) -> Made {
    let mut rules = Vec::new();
    let mut lines = Vec::new();
    for rule in args.all() {
        let (word, file) = first_word(&rule);
        if word != "file" || file.is_empty() {
            lines.push((text(&rule), None));
            continue;
        }
        let name = text(file);
        let bytes = setup.read(&name)?;
        let all = String::from_utf8_lossy(&bytes);
        let name: std::rc::Rc<str> = name.into();
        for (at, line) in (1..).zip(all.lines()) {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                lines.push((line.to_owned(), Some((name.clone(), at))));
            }
        }
    }
    if lines.len() > MOST {
        return Err(format!("more than {MOST} rules"));
    }
    for (number, (line, place)) in lines.iter().enumerate() {
        // Of a rule of a file its line is said, too.
        let wrong = |why: String| match place {
            Some((file, at)) => format!("{file}:{at}: {why}"),
            None => why,
        };
        let (output, condition) = match actions {
            false => (Some(number), line.as_str()),
            true => {
                let (word, rest) = first_word(line);
                let output = match word {
                    "allow" => Some(0),
                    "deny" | "drop" => None,
                    number => Some(
                        number
                            .parse()
                            .map_err(|_| wrong(format!("unknown action '{number}'")))?,
                    ),
                };
                (output, rest)
            }
        };
        let condition = if condition.trim().is_empty() && actions {
            "all"
        } else {
            condition
        };
        let condition = parse(condition, args.names)
            .map_err(|why| wrong(format!("pattern {number}: {why}")))?;
        rules.push((output, condition));
    }
    Ok(Box::new(Filter(rules)))
}

struct Filter(Vec<(Option<usize>, Condition)>);

impl Element for Filter {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Filter(self.0.clone()))
    }

    fn push(&mut self, _: usize, packet: Packet, cx: &Context<'_>) {
        match self.0.iter().find(|(_, c)| c.holds(&packet)) {
            Some((Some(port), _)) => cx.push(*port, packet),
            _ => cx.drop(packet),
        }
    }
}
