//! With the feature `dpdk`: compiles what is called of DPDK (src/port/dpdk/shim) and links its libraries.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=src/port/dpdk/shim");
    #[cfg(feature = "dpdk")]
    dpdk::build()?;
    Ok(())
}

#[cfg(feature = "dpdk")]
mod dpdk {
    use std::error::Error;

    /// The sources, without their folder.
    const SOURCES: [&str; 3] = ["eal.c", "device.c", "burst.c"];
    /// The libraries that are called; drivers are loaded when the process starts DPDK.
    const LIBRARIES: [&str; 5] = [
        "rte_eal",
        "rte_ethdev",
        "rte_mbuf",
        "rte_mempool",
        "rte_ring",
    ];

    pub fn build() -> Result<(), Box<dyn Error>> {
        let found = pkg_config::Config::new()
            .atleast_version("22.11")
            .cargo_metadata(false)
            .probe("libdpdk")
            .map_err(|e| {
                format!(
                    "the feature `dpdk` needs DPDK 22.11 or later: apt-get install libdpdk-dev\n{e}"
                )
            })?;
        let mut shim = cc::Build::new();
        shim.std("gnu11").flag("-include").flag("rte_config.h");
        // DPDK's headers are not meant to be free of warnings.
        for path in &found.include_paths {
            shim.flag("-isystem").flag(path);
        }
        if std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() == Ok("x86_64") {
            // What Debian builds DPDK for; its inline functions need it.
            shim.flag("-march=corei7");
        }
        for source in SOURCES {
            shim.file(format!("src/port/dpdk/shim/{source}"));
        }
        shim.warnings(true)
            .extra_warnings(true)
            .try_compile("millrace_dpdk")?;
        for path in &found.link_paths {
            println!("cargo:rustc-link-search=native={}", path.display());
        }
        for library in LIBRARIES {
            println!("cargo:rustc-link-lib={library}");
        }
        Ok(())
    }
}
