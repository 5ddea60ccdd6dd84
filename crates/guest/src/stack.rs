//! The stack that a program starts with: arguments, environment, auxiliary vector (System V ABI for x86-64, 3.4.1).

use crate::load::Image;
use crate::slot::PAGE;

/// Contents of the initial stack.
pub struct Start<'a> {
    /// arguments, the program's name first
    pub arguments: &'a [String],
    /// `NAME=VALUE`
    pub environment: &'a [String],
    /// the file that is run
    pub file: &'a str,
    /// the program
    pub program: Image,
    /// its interpreter
    pub interpreter: Image,
    /// 16 random bytes, for canaries and pointer guards
    pub random: [u8; 16],
    /// its image of the kernel's vDSO
    pub vdso: usize,
}

const PLATFORM: &str = "x86_64";

/// The words and strings of a stack that ends at `top`, a multiple of 16: where it begins (the number of
/// arguments stands there, at a multiple of 16), and its bytes from there to `top`.
#[must_use]
pub fn image(start: &Start<'_>, top: usize) -> (usize, Vec<u8>) {
    let mut strings = Vec::new();
    let mut place = |text: &[u8]| {
        let at = strings.len();
        strings.extend_from_slice(text);
        at
    };
    let random = place(&start.random);
    let zero_ended = |text: &str| [text.as_bytes(), &[0]].concat();
    let platform = place(&zero_ended(PLATFORM));
    let file = place(&zero_ended(start.file));
    let arguments: Vec<usize> = start
        .arguments
        .iter()
        .map(|a| place(&zero_ended(a)))
        .collect();
    let environment: Vec<usize> = start
        .environment
        .iter()
        .map(|e| place(&zero_ended(e)))
        .collect();
    let base = (top - strings.len()) & !15;
    strings.resize(top - base, 0);

    // SAFETY: asks for constants of the process.
    let own = |what: u64| (what, unsafe { libc::getauxval(what) } as usize);
    // SAFETY: these cannot fail.
    let ids = unsafe {
        [
            libc::getuid(),
            libc::geteuid(),
            libc::getgid(),
            libc::getegid(),
        ]
    };
    let [uid, euid, gid, egid] = ids.map(|id| id as usize);
    let auxiliary: [(u64, usize); 20] = [
        (libc::AT_PHDR, start.program.headers),
        (libc::AT_PHENT, 56),
        (libc::AT_PHNUM, start.program.count),
        (libc::AT_PAGESZ, PAGE),
        (libc::AT_BASE, start.interpreter.bias),
        (libc::AT_FLAGS, 0),
        (libc::AT_ENTRY, start.program.entry),
        (libc::AT_UID, uid),
        (libc::AT_EUID, euid),
        (libc::AT_GID, gid),
        (libc::AT_EGID, egid),
        (libc::AT_SECURE, 0),
        (libc::AT_RANDOM, base + random),
        own(libc::AT_HWCAP),
        own(libc::AT_HWCAP2),
        own(libc::AT_CLKTCK),
        (libc::AT_SYSINFO_EHDR, start.vdso),
        own(AT_MINSIGSTKSZ),
        (libc::AT_EXECFN, base + file),
        (libc::AT_PLATFORM, base + platform),
    ];
    let mut words = vec![arguments.len()];
    words.extend(arguments.iter().map(|a| base + a));
    words.push(0);
    words.extend(environment.iter().map(|e| base + e));
    words.push(0);
    for (what, value) in auxiliary {
        words.extend([what as usize, value]);
    }
    words.extend([0, 0]);
    if words.len() % 2 == 1 {
        // Below the strings, so that the first word stands at a multiple of 16.
        words.push(0);
    }
    let mut bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    bytes.extend(strings);
    (top - bytes.len(), bytes)
}

/// How much a signal frame takes on this processor.
const AT_MINSIGSTKSZ: u64 = 51;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_is_aligned_and_counts_the_arguments() {
        let image_of = Image {
            bias: 0x1000,
            entry: 0x2000,
            headers: 0x1040,
            count: 9,
        };
        for count in 0..5 {
            let arguments = vec!["a".to_owned(); count];
            let start = Start {
                arguments: &arguments,
                environment: &["X=y".into()],
                file: "/bin/a",
                program: image_of,
                interpreter: image_of,
                random: [7; 16],
                vdso: 0x8000,
            };
            let top = 0x7000_0000;
            let (at, bytes) = image(&start, top);
            assert_eq!(at % 16, 0);
            assert_eq!(at + bytes.len(), top);
            let word = |i: usize| usize::from_le_bytes(bytes[i * 8..i * 8 + 8].try_into().unwrap());
            assert_eq!(word(0), count);
            assert_eq!(word(count + 1), 0);
            let environment = word(count + 2) - at;
            assert_eq!(&bytes[environment..environment + 4], b"X=y\0");
        }
    }
}
