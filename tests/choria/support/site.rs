//! The site's helper: a shell script that records what it is given and answers as the test says.
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Looks up `answers/IDENTITY`: as a script it is given the recorded input and must print the reply, else it is the reply.
const HELPER: &str = r#"#!/bin/sh
set -eu
here=$(dirname "$0")
input=$(mktemp "$here/received/input.XXXXXX")
cat > "$input"
identity=$(sed -n 's/^{"identity":"\([^"]*\)".*/\1/p' "$input")
mkdir -p "$here/received/$identity"
n=$(ls "$here/received/$identity" | wc -l)
mv "$input" "$here/received/$identity/$n"
answer="$here/answers/$identity"
if [ -x "$answer" ]; then
  exec "$answer" "$here/received/$identity/$n"
fi
exec cat "$answer"
"#;

/// The helper of one network.
pub struct Site {
    folder: PathBuf,
}

impl Site {
    /// Puts the helper into the network's folder, where its `provisioner.yaml` names it.
    pub fn open(folder: &Path) -> Self {
        fs::create_dir(folder.join("received")).expect("a folder for what the helper receives");
        fs::create_dir(folder.join("answers")).expect("a folder for answers");
        write(&folder.join("helper"), HELPER, 0o755);
        Self { folder: folder.to_owned() }
    }

    /// From now on the helper answers this for the server.
    pub fn answer(&self, server: &str, reply: &Value) {
        write(&self.folder.join("answers").join(server), &reply.to_string(), 0o644);
    }

    /// From now on this shell script answers for the server; `$1` is the file with the helper's input.
    pub fn answer_by_script(&self, server: &str, script: &str) {
        write(&self.folder.join("answers").join(server), &format!("#!/bin/sh\nset -eu\n{script}"), 0o755);
    }

    /// What the helper has received about a server, call by call.
    pub fn received(&self, server: &str) -> Vec<String> {
        (0..)
            .map_while(|n| {
                fs::read_to_string(self.folder.join("received").join(server).join(n.to_string())).ok()
            })
            .collect()
    }
}

/// Written beside and moved into place: a helper that runs right now sees the old file or the new one.
fn write(file: &Path, text: &str, mode: u32) {
    let fresh = file.with_extension("fresh");
    fs::write(&fresh, text).expect("a file for the helper");
    fs::set_permissions(&fresh, fs::Permissions::from_mode(mode)).expect("its mode");
    fs::rename(&fresh, file).expect("in its place");
}
