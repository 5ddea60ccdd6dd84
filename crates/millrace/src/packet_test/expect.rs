//! A case's expectation of a packet, and the result.

use millrace_dataplane::packet::{self, Outcome};
use millrace_traffic::language::{self, Fate, Port};

use super::hexdiff::hexdiff;

/// Names of a function's ports and drop reasons.
pub struct Names<'a> {
    /// by number
    pub ports: &'a [String],
    /// by index
    pub reasons: &'a [String],
}

impl Names<'_> {
    /// Whether a packet can be dropped for this reason; one that has no name is called by its number.
    fn has(&self, reason: &str) -> bool {
        reason.starts_with("reason_") || self.reasons.iter().any(|r| r == reason)
    }
}

/// The number of a port that is named or numbered.
pub fn port(names: &[String], port: &Port) -> Result<u32, String> {
    let number = match port {
        Port::Number(number) => Some(*number),
        Port::Name(name) => names
            .iter()
            .position(|n| n.eq_ignore_ascii_case(name))
            .map(|n| n as u32),
    };
    let number = number.filter(|n| (*n as usize) < names.len());
    number.ok_or_else(|| format!("there is no port {port}; there are {}", names.join(", ")))
}

/// Whether a packet became what was expected. The message begins with a line of its own; where bytes
/// are wrong, both packets follow in words, then the bytes that differ.
pub fn compare(
    names: &Names<'_>,
    expected: Option<&Fate>,
    before: &[u8],
    outcome: &Outcome<'_>,
) -> Result<(), String> {
    let got = Got::of(names, outcome);
    let Some(expected) = expected else {
        return match got {
            Got::Aborted(why) => Err(format!("the packet was aborted ({why})")),
            _ => Ok(()),
        };
    };
    let wrong = |what: &str| Err(format!("expected {what}, got {}", got.text(names)));
    let unchanged = |what: &str| bytes(what, before, outcome.bytes);
    match expected {
        Fate::Forward(to, rewritten) => {
            let number = port(names.ports, to)
                .map_err(|e| format!("{e}; other fates are drop, flood, pass, consume, abort"))?;
            let what = format!("forward to {to}");
            if got != Got::Forwarded(number) {
                return wrong(&what);
            }
            match rewritten {
                Some(after) => bytes(&what, after, outcome.bytes),
                None => unchanged(&format!("{what} unchanged")),
            }
        }
        Fate::Drop(None) if matches!(got, Got::Dropped(_)) => Ok(()),
        Fate::Drop(None) => wrong("drop"),
        Fate::Drop(Some(reason)) if got == Got::Dropped(reason.clone()) => Ok(()),
        Fate::Drop(Some(reason)) if !names.has(reason) => Err(format!(
            "the function drops for no reason `{reason}`; its reasons are {}",
            names.reasons.join(", ")
        )),
        Fate::Drop(Some(reason)) => wrong(&format!("drop {reason}")),
        Fate::Flood if got == Got::Flooded => unchanged("flood unchanged"),
        Fate::Flood => wrong("flood"),
        Fate::Pass if got == Got::Passed => Ok(()),
        Fate::Pass => wrong("pass"),
        Fate::Consume if got == Got::Consumed => Ok(()),
        Fate::Consume => wrong("consume"),
        Fate::Abort if matches!(got, Got::Aborted(_)) => Ok(()),
        Fate::Abort => wrong("abort"),
    }
}

fn bytes(what: &str, want: &[u8], got: &[u8]) -> Result<(), String> {
    if want == got {
        return Ok(());
    }
    Err(format!(
        "expected {what}, got other bytes\n  expected  {}\n  got       {}\n{}",
        language::summarise(want),
        language::summarise(got),
        hexdiff(want, got)
    ))
}

#[derive(PartialEq, Eq)]
enum Got {
    Aborted(&'static str),
    Dropped(String),
    Passed,
    Forwarded(u32),
    Flooded,
    Consumed,
}

impl Got {
    fn of(names: &Names<'_>, outcome: &Outcome<'_>) -> Self {
        match outcome.fate {
            packet::Fate::Aborted => Self::Aborted("by the program"),
            packet::Fate::Forwarded(port) if port as usize >= names.ports.len() => {
                Self::Aborted("sent to a port that does not exist")
            }
            packet::Fate::Forwarded(port) => Self::Forwarded(port),
            packet::Fate::Dropped(reason) => {
                let name = names.reasons.get(reason as usize);
                Self::Dropped(name.cloned().unwrap_or_else(|| format!("reason_{reason}")))
            }
            packet::Fate::Passed => Self::Passed,
            packet::Fate::Flooded => Self::Flooded,
            packet::Fate::Consumed => Self::Consumed,
        }
    }

    fn text(&self, names: &Names<'_>) -> String {
        match self {
            Self::Aborted(why) => format!("abort ({why})"),
            Self::Dropped(reason) => format!("drop {reason}"),
            Self::Passed => "pass".into(),
            Self::Forwarded(port) => {
                let name = names.ports.get(*port as usize);
                format!("forward to {}", name.map_or("?", String::as_str))
            }
            Self::Flooded => "flood".into(),
            Self::Consumed => "consume".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(expected: Option<&Fate>, got: packet::Fate, after: &[u8]) -> Result<(), String> {
        let ports = ["LAN".to_owned(), "WAN".to_owned()];
        let reasons = ["dropped".to_owned(), "no_flow".to_owned()];
        let names = Names {
            ports: &ports,
            reasons: &reasons,
        };
        let outcome = Outcome {
            fate: got,
            purpose: 0,
            bytes: after,
            wire: 3,
            came: 3,
            number: 0,
            port: 0,
            stamp: 0,
        };
        compare(&names, expected, &[1, 2, 3], &outcome)
    }

    fn wan() -> Port {
        Port::Name("wan".into())
    }

    #[test]
    fn each_fate_matches_itself_and_nothing_else() {
        let same = [1, 2, 3];
        let pairs = [
            (Fate::Forward(wan(), None), packet::Fate::Forwarded(1)),
            (Fate::Drop(Some("no_flow".into())), packet::Fate::Dropped(1)),
            (Fate::Flood, packet::Fate::Flooded),
            (Fate::Pass, packet::Fate::Passed),
            (Fate::Consume, packet::Fate::Consumed),
            (Fate::Abort, packet::Fate::Aborted),
        ];
        for (i, (expected, _)) in pairs.iter().enumerate() {
            for (j, (_, got)) in pairs.iter().enumerate() {
                let result = result(Some(expected), *got, &same);
                assert_eq!(result.is_ok(), i == j, "{expected:?} {got:?}");
            }
        }
        assert_eq!(
            result(Some(&Fate::Abort), packet::Fate::Forwarded(2), &same),
            Ok(())
        );
        assert_eq!(
            result(Some(&Fate::Drop(None)), packet::Fate::Dropped(1), &same),
            Ok(())
        );
        let message = result(
            Some(&Fate::Drop(Some("no_flow".into()))),
            packet::Fate::Dropped(0),
            &same,
        );
        assert_eq!(
            message.unwrap_err(),
            "expected drop no_flow, got drop dropped"
        );
    }

    #[test]
    fn bytes_count_where_a_packet_leaves() {
        let same = Fate::Forward(wan(), None);
        let other = Fate::Forward(wan(), Some(vec![9]));
        let to_wan = packet::Fate::Forwarded(1);
        assert!(result(Some(&same), to_wan, &[1, 2, 3]).is_ok());
        assert!(result(Some(&other), to_wan, &[9]).is_ok());
        let message = result(Some(&same), to_wan, &[1, 2, 4]).unwrap_err();
        assert!(message.contains("expected  01 02 03"), "{message}");
        assert!(result(Some(&Fate::Flood), packet::Fate::Flooded, &[1, 2, 4]).is_err());
    }

    #[test]
    fn without_an_expectation_only_aborting_is_wrong() {
        assert!(result(None, packet::Fate::Dropped(0), &[]).is_ok());
        assert!(result(None, packet::Fate::Aborted, &[]).is_err());
        let nowhere = result(None, packet::Fate::Forwarded(7), &[]).unwrap_err();
        assert!(nowhere.contains("does not exist"), "{nowhere}");
    }

    #[test]
    fn ports_have_names_or_numbers() {
        let ports = ["LAN".to_owned(), "WAN".to_owned()];
        assert_eq!(port(&ports, &wan()), Ok(1));
        assert_eq!(port(&ports, &Port::Number(0)), Ok(0));
        assert!(
            port(&ports, &Port::Number(2))
                .unwrap_err()
                .contains("LAN, WAN")
        );
        assert!(port(&ports, &Port::Name("dmz".into())).is_err());
    }
}
