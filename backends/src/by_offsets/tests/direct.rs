//! Direct and buffered accesses, and a full file system.

use std::process::Command;

use beff_trace::Function as F;

use super::*;

/// None, with a message, if the scratch directory does not support direct I/O.
fn rig(name: &str, direct: Direct) -> Option<ProgramRig> {
    let mut rig = ProgramRig::new(name, direct)?;
    rig.open(&["rdwr", "create"]);
    let alignment = crate::statx::direct_align(&std::fs::File::open(rig.path()).unwrap()).unwrap();
    match alignment {
        Some(align) if align.common_bytes() <= 4096 => Some(rig),
        _ => {
            println!("SKIPPED: no direct I/O here");
            None
        }
    }
}

#[test]
fn off_auto_and_required() {
    for name in STORAGE_BACKENDS {
        let aligned = || data(F::WriteAt, Some(4096), 8192, BYTE, 4096);
        let odd = || data(F::WriteAt, Some(0), 100, BYTE, 0);
        let Some(mut off) = rig(name, Direct::Off) else { continue };
        off.run_steps(vec![aligned(), odd()]);
        assert_eq!(off.program.direct_bytes(), Some([0, 8292]));

        let Some(mut auto) = rig(name, Direct::Auto) else { continue };
        let outcomes = auto.run_steps(vec![aligned(), odd(), data(F::ReadAt, Some(4096), 8192, BYTE, 0)]);
        assert!(outcomes.iter().all(|outcome| outcome.error.is_none()));
        assert_eq!(auto.program.direct_bytes(), Some([2 * 8192, 2 * 8192 + 100]));
        assert_eq!(auto.file(), off.file());
        assert_eq!(auto.landing(0, 8192), off.file()[4096..]);

        let Some(mut required) = rig(name, Direct::Required) else { continue };
        let outcomes = required.run_steps(vec![aligned(), odd(), data(F::WriteAt, Some(0), 0, BYTE, 0)]);
        let results: Vec<_> = outcomes.iter().map(|outcome| (outcome.error, outcome.bytes)).collect();
        assert_eq!(results, [(None, Some(8192)), (class("MPI_ERR_IO"), None), (None, Some(0))]);
        let said = required.program.unexpected_error().unwrap();
        assert!(said.contains("direct I/O is required") && said.contains("--direct auto"), "{said}");
        assert_eq!(required.program.direct_bytes(), Some([8192, 8192]));
        assert!(!required.program.strategy().is_empty());
    }
}

#[test]
fn extents_are_routed_separately_and_pages_are_not_shared() {
    for name in STORAGE_BACKENDS {
        let Some(mut rig) = rig(name, Direct::Auto) else { continue };
        // An alignment of 512 is not sufficient together with buffered transfers.
        rig.run_steps(vec![data(F::WriteAt, Some(512), 512, BYTE, 512)]);
        assert_eq!(rig.program.direct_bytes(), Some([0, 512]));
        let expected: Vec<u8> = [vec![0; 512], (512..1024).map(source_byte).collect()].concat();
        assert_eq!(rig.file(), expected);
    }
}

#[test]
fn a_direct_read_ends_inside_of_a_sector() {
    for name in STORAGE_BACKENDS {
        let Some(mut rig) = rig(name, Direct::Required) else { continue };
        std::fs::write(rig.path(), vec![7; 5000]).unwrap();
        let outcomes = rig
            .run_steps(vec![data(F::ReadAt, Some(0), 16384, BYTE, 0), data(F::ReadAt, Some(8192), 4096, BYTE, 16384)]);
        let results: Vec<_> = outcomes.iter().map(|outcome| (outcome.error, outcome.bytes)).collect();
        assert_eq!(results, [(None, Some(5000)), (None, Some(0))], "{:?}", rig.program.unexpected_error());
        assert_eq!(rig.landing(0, 5001), [vec![7; 5000], vec![0]].concat());
    }
}

#[test]
fn missing_direct_io_is_reported_where_it_is_required() {
    for name in STORAGE_BACKENDS {
        let options = DriverOptions { direct: Direct::Required, ..DriverOptions::default() };
        let Some(mut rig) = ProgramRig::with(name, options, |_| "/dev/null".into()) else { continue };
        rig.open(&["rdwr"]);
        let outcome = rig.run_step(data(F::WriteAt, Some(0), 4096, BYTE, 0));
        assert_eq!(outcome.error, class("MPI_ERR_IO"));
        let said = rig.program.unexpected_error().unwrap();
        assert!(said.contains("/dev/null") && said.contains("no alignment"), "{said}");
    }
}

/// A file system of 64 KiB.
struct SmallFileSystem(PathBuf);

impl SmallFileSystem {
    fn new(at: &Path) -> Option<Self> {
        std::fs::create_dir_all(at).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "none"]).arg(at).output();
        match mounted {
            Ok(done) if done.status.success() => Some(Self(at.into())),
            _ => {
                println!("SKIPPED: no tmpfs can be mounted");
                None
            }
        }
    }
}

impl Drop for SmallFileSystem {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
    }
}

#[test]
fn the_disk_is_full() {
    for name in STORAGE_BACKENDS {
        let mut mounted = None;
        // Before the directory is opened: a later mount would not be visible through its descriptor.
        let small_file = |dir: &Path| {
            mounted = SmallFileSystem::new(&dir.join("small"));
            dir.join("small/f")
        };
        let Some(mut rig) = ProgramRig::with(name, DriverOptions::default(), small_file) else { continue };
        let Some(small) = mounted else { return };
        rig.open(&["rdwr", "create"]);
        let outcomes = rig.run_steps(vec![
            data(F::WriteAt, Some(0), 40000, BYTE, 0),
            data(F::WriteAt, Some(40000), 80000, BYTE, 0),
            data(F::WriteAt, Some(0), 100, BYTE, 0),
            file_call(F::Close),
        ]);
        let errors: Vec<_> = outcomes.iter().map(|outcome| outcome.error).collect();
        assert_eq!(errors, [None, class("MPI_ERR_NO_SPACE"), None, None], "{name}");
        let said = rig.program.unexpected_error().unwrap();
        assert!(said.contains("small/f at offset") && said.contains("No space left"), "{said}");
        rig.program.finish().unwrap();
        drop(small);
    }
}
