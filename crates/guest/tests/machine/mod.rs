//! A machine with protection keys for tests, whatever the processor: QEMU's own emulation with Debian's kernel and an
//! initial file system of a few files, which runs one test and ends.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long it may run: usually it ends within 20 s, and a machine that is busy with other tests is slower.
const LIMIT: Duration = Duration::from_secs(300);

/// The files that it starts with, in the format that the kernel unpacks: cpio, "newc" (kernel documentation,
/// driver-api/early-userspace/buffer-format).
#[derive(Default)]
pub struct Files {
    bytes: Vec<u8>,
    folders: std::collections::BTreeSet<PathBuf>,
    count: u32,
}

impl Files {
    fn entry(&mut self, name: &str, mode: u32, data: &[u8], device: (u32, u32)) {
        self.count += 1;
        let fields = [
            self.count,
            mode,
            0,
            0,
            1,
            0,
            data.len() as u32,
            0,
            0,
            device.0,
            device.1,
            name.len() as u32 + 1,
            0,
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08X}").bytes());
        }
        for part in [[name.as_bytes(), &[0]].concat().as_slice(), data] {
            self.bytes.extend_from_slice(part);
            self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        }
    }

    /// A folder, and those above it.
    pub fn folder(&mut self, path: &Path) {
        let above: Vec<&Path> = path.ancestors().collect();
        for folder in above.into_iter().rev() {
            let name = folder.to_str().unwrap().trim_start_matches('/').to_owned();
            if !name.is_empty() && self.folders.insert(folder.to_owned()) {
                self.entry(&name, 0o040_755, &[], (0, 0));
            }
        }
    }

    /// A program.
    pub fn file(&mut self, path: &Path, from: &Path) {
        self.folder(path.parent().unwrap());
        let name = path.to_str().unwrap().trim_start_matches('/').to_owned();
        self.entry(&name, 0o100_755, &std::fs::read(from).unwrap(), (0, 0));
    }

    /// The libraries of programs, and their loader, where they are here.
    pub fn libraries(&mut self, programs: &[&Path]) {
        let mut all = std::collections::BTreeSet::new();
        for program in programs {
            let said = Command::new("ldd").arg(program).output().unwrap().stdout;
            let said = String::from_utf8_lossy(&said).into_owned();
            let words = said.split_whitespace().filter(|w| w.starts_with('/'));
            all.extend(words.map(PathBuf::from));
        }
        for library in all {
            self.file(&library, &library);
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.folder(Path::new("/dev"));
        self.entry("dev/console", 0o020_600, &[], (5, 1));
        self.entry("dev/null", 0o020_666, &[], (1, 3));
        self.entry("TRAILER!!!", 0, &[], (0, 0));
        self.bytes
    }
}

/// The emulator and a kernel; says what is missing.
pub fn found() -> Option<PathBuf> {
    let emulator = Command::new("qemu-system-x86_64")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !emulator.is_ok_and(|status| status.success()) {
        println!("skipped: qemu-system-x86_64 is not installed (scripts/setup.sh test)");
        return None;
    }
    let readable = |path: &PathBuf| std::fs::File::open(path).is_ok();
    let entries = std::fs::read_dir("/boot").into_iter().flatten().flatten();
    let kernels = entries.map(|e| e.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("vmlinuz-") && readable(path)
    });
    let kernel = kernels.max();
    if kernel.is_none() {
        println!("skipped: there is no kernel in /boot that can be read (scripts/setup.sh test)");
    }
    kernel
}

/// Boots a machine with these files; what its console said.
pub fn boot(folder: &Path, kernel: &Path, files: Files) -> String {
    let (initial, console) = (folder.join("initial"), folder.join("console"));
    std::fs::write(&initial, files.finish()).unwrap();
    let mut machine = Command::new("qemu-system-x86_64")
        .args(["-accel", "tcg", "-cpu", "max", "-m", "768", "-smp", "1"])
        .args(["-nodefaults", "-no-user-config", "-display", "none"])
        .args(["-no-reboot", "-net", "none"])
        .arg("-serial")
        .arg(format!("file:{}", console.display()))
        .arg("-kernel")
        .arg(kernel)
        .arg("-initrd")
        .arg(&initial)
        .args([
            "-append",
            "console=ttyS0 quiet panic=-1 random.trust_cpu=on",
        ])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    let ended = loop {
        if let Some(status) = machine.try_wait().unwrap() {
            break status.success();
        }
        if begin.elapsed() > LIMIT {
            machine.kill().unwrap();
            machine.wait().unwrap();
            break false;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let said = std::fs::read(&console).unwrap_or_default();
    let said = String::from_utf8_lossy(&said).into_owned();
    println!("the machine ran for {:.1} s", begin.elapsed().as_secs_f64());
    assert!(ended, "the machine did not end by itself:\n{said}");
    said
}
