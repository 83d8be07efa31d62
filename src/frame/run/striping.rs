//! Stripes of the files of a run, set on its directories by the command of the file system (`--stripe`). New files have the stripes of
//! their directory.

use std::path::Path;
use std::time::Duration;

use crate::frame::config::Stripe;
use crate::frame::system::command::output_of;

/// Time for one command.
const TIMEOUT: Duration = Duration::from_secs(30);

/// File systems whose directories determine the stripes of new files.
const KNOWN: [&str; 4] = ["lustre", "beegfs", "fhgfs", "ceph"];

/// Command that sets the stripes of the new files of a directory; None if the file system has none that a directory determines.
fn stripe_command(fs_type: &str, directory: &str, stripe: Stripe) -> Option<Vec<String>> {
    let Stripe { count, size_bytes } = stripe;
    let words: Vec<String> = match KNOWN.into_iter().find(|name| fs_type.contains(name))? {
        // lfs-setstripe(1)
        "lustre" => {
            let [count, size] = [format!("-c{count}"), format!("-S{size_bytes}")];
            ["lfs".into(), "setstripe".into(), count, size].into()
        }
        // Layout attributes of directories: one object holds one stripe unit.
        "ceph" => {
            let layout = format!("stripe_unit={size_bytes} stripe_count={count} object_size={size_bytes}");
            ["setfattr".into(), "-n".into(), "ceph.dir.layout".into(), "-v".into(), layout].into()
        }
        _ => {
            let [count, size] = [format!("--numtargets={count}"), format!("--chunksize={size_bytes}")];
            ["beegfs-ctl".into(), "--setpattern".into(), count, size].into()
        }
    };
    Some(words.into_iter().chain([directory.to_owned()]).collect())
}

/// Refuses `--stripe` where a directory does not determine stripes.
///
/// # Errors
/// The cause.
pub fn check_stripe(fs_type: &str) -> Result<(), String> {
    match KNOWN.iter().any(|name| fs_type.contains(name)) {
        true => Ok(()),
        false => Err(format!("{fs_type} has no stripes that a directory determines")),
    }
}

/// Sets the stripes of new files in these directories. On one rank.
///
/// # Errors
/// The command that failed, and why.
pub fn set_stripes<'a>(
    fs_type: &str,
    directories: impl IntoIterator<Item = &'a Path>,
    stripe: Stripe,
) -> Result<(), String> {
    for directory in directories {
        let words = stripe_command(fs_type, &directory.display().to_string(), stripe);
        let words = words.ok_or_else(|| check_stripe(fs_type).err().unwrap_or_default())?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        output_of(&words, TIMEOUT).map_err(|why| format!("`{}` {why}", words.join(" ")))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRIPE: Stripe = Stripe { count: 4, size_bytes: 1 << 20 };

    #[test]
    fn each_file_system_has_its_command() {
        let command = |fs_type| stripe_command(fs_type, "/d", STRIPE).map(|words| words.join(" "));
        assert_eq!(command("lustre").as_deref(), Some("lfs setstripe -c4 -S1048576 /d"));
        assert_eq!(command("beegfs").as_deref(), Some("beegfs-ctl --setpattern --numtargets=4 --chunksize=1048576 /d"));
        let ceph = "setfattr -n ceph.dir.layout -v stripe_unit=1048576 stripe_count=4 object_size=1048576 /d";
        assert_eq!(command("fuse.ceph").as_deref(), Some(ceph));
        assert_eq!(command("ext4"), None);
        assert!(check_stripe("lustre").is_ok() && check_stripe("xfs").unwrap_err().starts_with("xfs has no stripes"));
    }

    #[test]
    fn a_command_that_fails_is_named_with_its_cause() {
        let set = |fs_type| set_stripes(fs_type, [Path::new("/no/such")], STRIPE);
        let error = set("beegfs").unwrap_err();
        assert!(error.starts_with("`beegfs-ctl --setpattern --numtargets=4"), "{error}");
        assert!(error.contains("cannot be run") || error.contains("failed"), "{error}");
        assert!(set("ext4").unwrap_err().contains("no stripes"));
    }
}
