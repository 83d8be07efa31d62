//! IOR as the other side: its POSIX backend, contiguous in a segment of a shared file or in a file of each process. The program is
//! named by `--ior`; it is no part of this one.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::sides::{Access, Sample, Work};
use crate::Failure;

/// What one run of it does: a transfer is a chunk, a block is all that a process moves.
fn arguments(work: &Work, summary: &str) -> Vec<String> {
    let mut words: Vec<String> =
        ["-a", "POSIX", "-s", "1", "-i", "1", "-k", "-O", "summaryFormat=JSON", "-O"].map(str::to_owned).to_vec();
    words.push(format!("summaryFile={summary}"));
    words.extend(["-t".into(), work.chunk_bytes.to_string(), "-b".into(), work.job_bytes().to_string()]);
    words.extend(["-o".into(), work.path.display().to_string()]);
    let how: &[&str] = match work.access {
        Access::Write => &["-w", "-e"],
        // The file stays as it is before.
        Access::Rewrite => &["-w", "-e", "-E"],
        Access::Read | Access::Cached => &["-r", "-E"],
    };
    words.extend(how.iter().map(ToString::to_string));
    words.extend((!work.shared).then(|| "-F".to_owned()));
    words
}

/// One run. Its time is that of the transfers with the sync behind them, without open and close, as on our side.
pub fn ior(work: &Work) -> Result<Sample, Failure> {
    let program = work.ior.as_ref().ok_or("no IOR is named")?;
    let summary = work.path.with_extension("ior.json");
    let launcher = std::env::var("BEFF_MPIRUN").unwrap_or_else(|_| "mpirun".into());
    let output = Command::new(&launcher)
        .args(["-n", &work.jobs.to_string()])
        .arg(program)
        .args(arguments(work, &summary.display().to_string()))
        .stdin(Stdio::null())
        .output()?;
    let told = || String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(format!("IOR: {}: {}", output.status, told()).into());
    }
    let text = fs::read_to_string(&summary).map_err(|e| format!("IOR left no summary ({e}): {}", told()))?;
    fs::remove_file(&summary)?;
    let document: Value = serde_json::from_str(&text).map_err(|e| format!("IOR's summary is no JSON: {e}"))?;
    let seconds = transfer_seconds(&document).ok_or("IOR's summary has no wrRdTime")?;
    Ok(Sample { transfer_seconds: seconds, ..Sample::default() })
}

fn transfer_seconds(document: &Value) -> Option<f64> {
    document["tests"][0]["Results"][0][0]["wrRdTime"]
        .as_f64()
        .or_else(|| document["tests"][0]["Results"][0]["wrRdTime"].as_f64())
}

/// Names of the files of each process, as IOR makes them.
pub fn file_of_process(path: &std::path::Path, job: u32) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{job:08}"));
    name.into()
}
