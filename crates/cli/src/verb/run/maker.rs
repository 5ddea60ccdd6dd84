//! New elements of a chain that runs: what `millrace ctl chain attach` and `replace` ask for.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use millrace::Make;
use millrace_chain::{Description, What};
use millrace_control::Trouble;
use millrace_control::chain::{Made, Maker};
use millrace_control::protocol::ChainRequest;
use millrace_dataplane::worker::Code;

use super::Run;
use super::beside::Several;
use super::chain::called;
use super::element::{self, Element};
use super::printed::Printed;
use crate::failure::{Failure, detail};
use crate::function;
use crate::outside::Outside;

/// Makes elements as the run was told to make its own.
pub struct Elements {
    stdout_taken: bool,
    prefetch: bool,
    sanitize: bool,
    seed: u64,
    /// how many elements there have been
    made: AtomicUsize,
    /// where what guests print is taken from them; none where no ports are served
    printed: Option<Mutex<Printed>>,
    /// the workers, where there are several
    several: Option<Arc<Several>>,
}

impl Run {
    /// What makes elements while this runs on these workers, which has so many, and serves `live` ports or not.
    pub(super) fn maker(&self, made: usize, live: bool, several: Option<Arc<Several>>) -> Elements {
        Elements {
            stdout_taken: self.json || self.takes_stdout(),
            prefetch: !self.no_prefetch,
            sanitize: self.sanitize,
            seed: self.seed,
            made: AtomicUsize::new(made),
            printed: live.then(Mutex::default),
            several,
        }
    }
}

impl Maker for Elements {
    fn make(&self, wanted: &ChainRequest) -> Result<Made, Trouble> {
        let word = wanted.word.as_deref().unwrap_or_default();
        if word.is_empty() {
            return Err(
                Trouble::new("malformed", "no function and no guest is named")
                    .help("name one as `millrace run` takes it"),
            );
        }
        self.made(word, wanted).map_err(trouble)
    }

    fn alone(&self, element: u64) -> Option<String> {
        self.several.as_ref()?.alone(element)
    }
}

impl Elements {
    fn made(&self, word: &str, wanted: &ChainRequest) -> Result<Made, Failure> {
        let folder = wanted.directory.as_deref().map(Path::new);
        let chain = Description::line(&[word.to_owned()], called);
        let of = chain.elements.first();
        if let Some(of) = of
            && let What::Guest(guest) = &of.what
        {
            let settings = [&wanted.set, &wanted.capacity, &wanted.maps];
            if settings.iter().any(|given| !given.is_empty()) {
                return Err(Failure::wrong(format!(
                    "{word}: a guest has no --set, --capacity or --map"
                ))
                .help("write its options before the command, as in guest,limit=1:COMMAND"));
            }
            let mut guest = guest.clone();
            // A path that is typed begins where it is typed. What the word says stands behind it, and counts.
            if let Some(folder) = folder.and_then(Path::to_str)
                && !guest
                    .command
                    .split(':')
                    .next()
                    .unwrap_or_default()
                    .contains(",dir=")
            {
                guest.options.push(("dir".into(), folder.to_owned(), None));
            }
            let several = self.several.as_ref();
            let classes = several.map(|s| s.classes(word)).transpose()?;
            let count = classes.map_or(1, |c| u16::try_from(c.count()).unwrap_or(u16::MAX));
            let element = Element::guest(&chain, of, &guest, self.stdout_taken, count)?;
            let Element::Guest(specs) = &element else {
                return Err(Failure::wrong(format!("{word}: no guest")));
            };
            // A replacement is called as what it replaces.
            let own = wanted.name.as_ref().or(wanted.element.as_ref());
            let own = own.unwrap_or(&of.name);
            let specs = &match &self.printed {
                Some(printed) => {
                    let mut printed = printed.lock().unwrap_or_else(PoisonError::into_inner);
                    element::printed(specs, own, &mut printed)?
                }
                None => specs.clone(),
            };
            return Ok(Made {
                link: element::link(
                    &of.name,
                    match classes {
                        None => element::start(specs)?,
                        Some(classes) => Code::Classed(element::start_each(specs, classes)?),
                    },
                ),
                ports: Vec::new(),
                exposed: None,
                alone: several.map(|_| "it is a guest, and may do anything to packets".to_owned()),
                successor: None,
            });
        }
        let full = folder.map_or_else(
            || word.to_owned(),
            |folder| millrace_chain::file::beside(folder, word),
        );
        let make = Make {
            sanitize: self.sanitize,
            ..function::make(&wanted.set, &wanted.capacity, None)?
        };
        let make = match &self.several {
            Some(several) => several.arranged(&full, &make)?,
            None => make,
        };
        let function = function::load(&full, &make)?;
        let maps = wanted
            .maps
            .iter()
            .map(|text| match (text.split_once('='), folder) {
                (Some((name, file)), Some(folder)) => {
                    format!("{name}={}", folder.join(file).display())
                }
                _ => text.clone(),
            });
        let entries = Outside::entries(&maps.collect::<Vec<_>>(), &function.exposed)?;
        let index = self.made.fetch_add(1, Ordering::Relaxed);
        let seed = self.seed.wrapping_add(index as u64);
        Ok(Made {
            link: function.link(seed, entries, self.prefetch)?,
            ports: function.ports.clone(),
            alone: { self.several.as_ref() }.and_then(|several| several.alone_of(&function)),
            successor: millrace::cluster::successor(&function),
            exposed: Some(function.exposed),
        })
    }
}

/// A text without the colours that it has where this process is at a terminal (ECMA-48, 8.3.117).
fn plain(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(part.split_once('m').map_or(part, |(_, rest)| rest));
    }
    plain
}

/// A failure as it is told over the socket: with the compiler's or the checker's own words.
pub(super) fn trouble(failure: Failure) -> Trouble {
    let what = match detail(&failure) {
        Some(detail) => format!("{}\n{}", failure.what, plain(detail.trim_end())),
        None => failure.what,
    };
    Trouble {
        code: "refused".into(),
        what,
        help: failure.help,
    }
}
