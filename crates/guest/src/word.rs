//! How a chain names a guest: `guest:COMMAND`, or with options `guest,limit=5,memory=256:COMMAND`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::command::{Failing, Spec};
use crate::error::GuestError;
use crate::snapshot::restore;

/// A guest as a chain names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word<'a> {
    options: &'a str,
    command: &'a str,
}

/// What options there are, for messages.
const OPTIONS: &str = "jit, isolate, memory=MIB, heap=MIB, failing=pass|drop, limit=SECONDS, restart=TIMES, slot=NUMBER, mac=ADDRESS, address=IP/BITS, send=IP:PORT, snapshot=FILE, every=SECONDS, restore=FILE, dir=FOLDER, read=PATH, write=PATH and only, separated by commas";

impl Word<'_> {
    /// The snapshot that it goes on from.
    fn snapshot(&self) -> Option<&str> {
        let mut options = self.options.split(',');
        options.find_map(|o| o.strip_prefix("restore="))
    }

    /// From its command, or from its snapshot.
    fn begun(&self) -> Result<Spec, GuestError> {
        let Some(file) = self.snapshot() else {
            return Spec::parse(self.command);
        };
        let wrong = |what: String| GuestError::Command {
            command: format!("restore={file}"),
            what,
        };
        if !self.command.is_empty() {
            return Err(wrong(
                "its program is that of the snapshot: write guest,restore=FILE:".into(),
            ));
        }
        let mut spec = restore::spec(Path::new(file)).map_err(|e| wrong(e.to_string()))?;
        spec.restore = Some(file.into());
        if self.options.split(',').any(|o| o == "only") {
            // Nor what it might where it began.
            (spec.read, spec.write, spec.send) = (Vec::new(), Vec::new(), Vec::new());
        }
        Ok(spec)
    }
}

impl<'a> Word<'a> {
    /// None when the word names no guest.
    #[must_use]
    pub fn of(word: &'a str) -> Option<Self> {
        let rest = word.strip_prefix("guest")?;
        let Some(rest) = rest.strip_prefix(',') else {
            let command = rest.strip_prefix(':')?;
            return Some(Self {
                options: "",
                command,
            });
        };
        let (options, command) = rest.split_at_checked(length(rest)?)?;
        let command = command.strip_prefix(':')?;
        Some(Self { options, command })
    }

    /// The word that names the program, as it was written; what the program of a snapshot is called.
    #[must_use]
    pub fn program(&self) -> Option<String> {
        if let Some(file) = self.snapshot() {
            return restore::spec(Path::new(file)).ok().map(|spec| spec.name);
        }
        let words = shell_words::split(self.command).ok()?;
        words.into_iter().next()
    }

    /// The program, its arguments, and what the options ask for.
    ///
    /// # Errors
    /// [`GuestError::Command`] when an option does not exist or cannot be read, or there is no such program.
    pub fn spec(&self) -> Result<Spec, GuestError> {
        let mut spec = self.begun()?;
        for option in self.options.split(',').filter(|o| !o.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            option_of(&mut spec, self.command, name, value)?;
        }
        Ok(spec)
    }
}

/// Bytes of the options at the beginning of a text: up to the first colon that is not of `send=ADDRESS:PORT`.
fn length(text: &str) -> Option<usize> {
    let mut from = 0;
    loop {
        let option = text.get(from..)?;
        let mut end = option.find([',', ':'])?;
        if let Some(value) = option.strip_prefix("send=") {
            // Behind the colon of the port, which in an IPv6 address follows its bracket.
            let address = value.find(']').unwrap_or(0);
            let port = address + value.get(address..)?.find(':')? + 1;
            end = "send=".len() + port + value.get(port..)?.find([',', ':'])?;
        }
        from += end;
        if text.get(from..)?.starts_with(':') {
            return Some(from);
        }
        from += 1;
    }
}

/// Sets an option of docs/guests.md by its name; the value of a switch is empty. `command` is for the message.
///
/// # Errors
/// [`GuestError::Command`] when it does not exist, or its value cannot be read.
pub fn option_of(
    spec: &mut Spec,
    command: &str,
    name: &str,
    value: &str,
) -> Result<(), GuestError> {
    set(spec, name, value).ok_or_else(|| {
        let option = match value {
            "" => name.to_owned(),
            value => format!("{name}={value}"),
        };
        GuestError::Command {
            command: command.to_owned(),
            what: format!("option `{option}`: there are {OPTIONS}; memory is 16 to 4096 MiB, heap 1 to 1024, paths are absolute"),
        }
    })
}

/// Sets an option; none when there is no such option, or its value is not one.
fn set(spec: &mut Spec, name: &str, value: &str) -> Option<()> {
    match name {
        "jit" if value.is_empty() => spec.jit = true,
        "isolate" if value.is_empty() => spec.isolate = true,
        "only" if value.is_empty() => spec.only = true,
        "memory" => {
            let mib: usize = value.parse().ok()?;
            spec.budget = (16..=4096).contains(&mib).then_some(mib << 20)?;
        }
        "heap" => {
            let mib: usize = value.parse().ok()?;
            spec.heap = (1..=1024).contains(&mib).then_some(mib << 20)?;
        }
        "failing" => {
            spec.failing = match value {
                "pass" => Failing::Pass,
                "drop" => Failing::Drop,
                _ => return None,
            }
        }
        "limit" => {
            let limit = Duration::try_from_secs_f64(value.parse().ok()?).ok()?;
            spec.limit = (!limit.is_zero()).then_some(limit)?;
        }
        "restart" => spec.restarts = value.parse().ok()?,
        "snapshot" if value.starts_with('/') => spec.snapshot = Some(PathBuf::from(value)),
        "every" => {
            let every = Duration::try_from_secs_f64(value.parse().ok()?).ok()?;
            spec.every = (!every.is_zero()).then_some(every)?;
        }
        // Looked at before.
        "restore" => {}
        "slot" => spec.slot = Some(value.parse().ok()?),
        "address" => {
            let (address, bits) = value.split_once('/')?;
            let bits: u8 = bits.parse().ok()?;
            spec.address = Some((address.parse().ok()?, (bits <= 32).then_some(bits)?));
        }
        "send" => spec.send.push(value.parse().ok()?),
        "mac" => spec.mac = Some(mac(value)?),
        "dir" => {
            let folder = std::fs::canonicalize(value).ok()?;
            spec.directory = folder.is_dir().then_some(folder)?;
        }
        "read" if value.starts_with('/') => spec.read.push(PathBuf::from(value)),
        "write" if value.starts_with('/') => spec.write.push(PathBuf::from(value)),
        _ => return None,
    }
    Some(())
}

/// Six bytes in hexadecimal with hyphens between them (IEEE 802; a colon would end the options), as most programs
/// write them: with colons.
fn mac(text: &str) -> Option<String> {
    let parts: Vec<&str> = text.split('-').collect();
    let byte = |part: &&str| part.len() == 2 && u8::from_str_radix(part, 16).is_ok();
    (parts.len() == 6 && parts.iter().all(byte)).then(|| parts.join(":"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_stand_before_the_command() {
        for other in ["guest", "guests:ls", "firewall", "guest/x.c", "guest,jit"] {
            assert_eq!(Word::of(other), None, "{other}");
        }
        let spec = Word::of(
            "guest,jit,isolate,only,memory=64,heap=8,failing=drop,limit=0.5,slot=7,read=/srv:sh -c :",
        )
        .unwrap()
        .spec()
        .unwrap();
        assert!(spec.jit && spec.isolate && spec.only);
        assert_eq!((spec.heap, spec.failing), (8 << 20, Failing::Drop));
        assert_eq!((spec.budget, spec.slot), (64 << 20, Some(7)));
        assert_eq!(spec.limit, Duration::from_millis(500));
        assert_eq!(spec.arguments, ["sh", "-c", ":"]);
        let spec =
            Word::of("guest,send=127.0.0.1:2055,address=192.0.2.1/24,send=[::1]:9,jit:sh -c :")
                .unwrap()
                .spec()
                .unwrap();
        assert_eq!(
            spec.send,
            ["127.0.0.1:2055", "[::1]:9"].map(|a| a.parse().unwrap())
        );
        assert_eq!(spec.address, Some(([192, 0, 2, 1].into(), 24)));
        assert!(spec.jit && spec.arguments == ["sh", "-c", ":"]);
        for wrong in [
            "guest,send=127.0.0.1:x:sh",
            "guest,send=localhost:1:sh",
            "guest,address=192.0.2.1:sh",
            "guest,address=192.0.2.1/33:sh",
            "guest,memory=1:sh",
            "guest,limit=0:sh",
            "guest,jit=1:sh",
            "guest,fast:sh",
            "guest,heap=0:sh",
            "guest,failing=open:sh",
            "guest,read=x:sh",
            "guest,mac=02-00:sh",
        ] {
            let error = Word::of(wrong).unwrap().spec().unwrap_err().to_string();
            assert!(error.contains("option"), "{error}");
        }
    }
}
