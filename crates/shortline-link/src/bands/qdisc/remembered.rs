//! What was at a device's root before bands were installed: a small file under `/run/shortline`,
//! one a device and network namespace, that goes with the bands or the next boot.
//!
//! A default of the kernel's own needs no more than its name. A qdisc that someone configured is
//! kept with its options and classes, as the steps that make it again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::QdiscError;
use super::install::Step;
use super::options;
use super::tree::{MAJOR, Node, ROOT, Tree};

/// Where the files are.
const FOLDER: &str = "/run/shortline";
/// How often a file is written whose folder has gone meanwhile.
const WRITES_MAX: u32 = 100;

/// What was there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    /// The kind of the root qdisc, for people.
    pub kind: String,
    steps: Vec<Step>,
}

/// A file that remembers.
pub struct Remembered {
    path: PathBuf,
    content: Content,
}

#[derive(Serialize, Deserialize)]
struct Content {
    device: String,
    /// A device of the same name that was made since is another one.
    index: u32,
    before: Before,
}

impl Before {
    /// What `tree` has.
    pub fn of(tree: &Tree) -> Self {
        let kind = tree.root().map_or("noqueue", |root| &root.kind).to_owned();
        let configured = tree.root().is_some_and(|root| root.handle != 0);
        let mut steps = Vec::new();
        if configured && kind != "noqueue" {
            let mut nodes: Vec<(bool, &Node)> = tree
                .qdiscs
                .iter()
                .filter(|qdisc| qdisc.handle != 0)
                .map(|qdisc| (false, qdisc))
                .collect();
            // Kinds without classes to be made list those that they have anyway.
            let made = tree.classes.iter().filter(|class| class.kind == "htb");
            nodes.extend(made.map(|class| (true, class)));
            append_below(ROOT, &nodes, &mut steps);
        }
        Self { kind, steps }
    }

    /// Whether the kernel puts it back by itself.
    pub fn is_default(&self) -> bool {
        self.steps.is_empty()
    }

    /// Whether the steps make all of `tree` again.
    pub fn is_restorable(&self, tree: &Tree) -> bool {
        const CLASSES_OF_THEIR_OWN: [&str; 6] = ["htb", "prio", "tbf", "fq", "fq_codel", "mq"];
        let known = |class: &Node| CLASSES_OF_THEIR_OWN.contains(&class.kind.as_str());
        tree.filters == 0 && tree.classes.iter().all(known)
    }

    /// What makes it again.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }
}

/// Parents before what is below them.
fn append_below(above: u32, nodes: &[(bool, &Node)], steps: &mut Vec<Step>) {
    for &(class, node) in nodes {
        // A class directly below its qdisc is told as if below the root.
        let parent = if class && node.parent == ROOT {
            node.handle & MAJOR
        } else {
            node.parent
        };
        // Classes that nobody made go with their qdisc.
        let made = nodes.iter().any(|(_, node)| node.handle == parent);
        let below = if made || parent == ROOT {
            parent
        } else {
            parent & MAJOR
        };
        if below == above {
            let options = match (class, node.kind.as_str()) {
                (false, "htb") => options::htb_as_asked(&node.options),
                _ => node.options.clone(),
            };
            steps.push(Step {
                class,
                handle: node.handle,
                parent,
                kind: node.kind.clone(),
                options,
            });
            append_below(node.handle, nodes, steps);
        }
    }
}

impl Remembered {
    /// Writes the file.
    pub fn write(device: &str, index: u32, before: &Before) -> Result<Self, QdiscError> {
        let path = path_of(device)?;
        let content = Content {
            device: device.to_owned(),
            index,
            before: before.clone(),
        };
        let text = serde_json::to_vec(&content).map_err(|error| trouble(&path, error))?;
        write_in_folder(&path, &text).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => QdiscError::NotPermitted(path.display().to_string()),
            _ => trouble(&path, error),
        })?;
        Ok(Self { path, content })
    }

    /// Reads the file of a device, unless there is none, or it is of another of the same name.
    pub fn read(device: &str, index: u32) -> Result<Option<Self>, QdiscError> {
        let path = path_of(device)?;
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(trouble(&path, error)),
        };
        let content: Content =
            serde_json::from_slice(&text).map_err(|error| trouble(&path, error))?;
        Ok((content.index == index).then_some(Self { path, content }))
    }

    /// What it remembers.
    pub fn before(&self) -> &Before {
        &self.content.before
    }

    /// Removes the file.
    pub fn forget(&self) {
        remove_with_folder(&self.path);
    }
}

/// Another device's [`Remembered::forget`] may remove the folder at any time: before the file is
/// written it is not found then, and while it is made it is said to be there, though it is gone.
fn write_in_folder(path: &Path, text: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    let write = || fs::create_dir_all(folder).and_then(|()| fs::write(path, text));
    for _ in 1..WRITES_MAX {
        match write() {
            Err(error) if is_of_a_folder_just_gone(&error) => {}
            written => return written,
        }
    }
    write()
}

fn is_of_a_folder_just_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists
    )
}

/// Its folder goes with the last file.
fn remove_with_folder(path: &Path) {
    // A file that stays is found not to fit, or is written over.
    let _ = fs::remove_file(path);
    if let Some(folder) = path.parent() {
        let _ = fs::remove_dir(folder);
    }
}

/// Namespaces share the folder but not the names of their devices.
fn path_of(device: &str) -> Result<PathBuf, QdiscError> {
    use std::os::unix::fs::MetadataExt;
    let namespace = Path::new("/proc/thread-self/ns/net");
    let inode = fs::metadata(namespace)
        .map_err(|error| trouble(namespace, error))?
        .ino();
    Ok(Path::new(FOLDER).join(format!("uplink-{inode}-{device}.json")))
}

fn trouble(path: &Path, problem: impl ToString) -> QdiscError {
    QdiscError::Memory {
        path: path.display().to_string(),
        problem: problem.to_string(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn node(handle: u32, parent: u32, kind: &str) -> Node {
        Node {
            handle,
            parent,
            kind: kind.to_owned(),
            options: vec![1, 2, 3],
            ..Node::default()
        }
    }

    #[test]
    fn devices_forget_and_write_at_the_same_time() {
        const ROUNDS: u32 = 2000;
        let run = tempfile::tempdir().unwrap();
        let folder = run.path().join("shortline");
        std::thread::scope(|scope| {
            for device in ["up0", "up1", "up2", "up3"] {
                let path = folder.join(device);
                scope.spawn(move || {
                    for _ in 0..ROUNDS {
                        write_in_folder(&path, b"before").unwrap();
                        assert_eq!(fs::read(&path).unwrap(), b"before");
                        remove_with_folder(&path);
                    }
                });
            }
        });
        assert!(!folder.exists());
    }

    #[test]
    fn a_default_needs_no_steps() {
        assert!(Before::of(&Tree::default()).is_default());
        let tree = Tree {
            qdiscs: vec![node(0, ROOT, "pfifo_fast")],
            ..Tree::default()
        };
        let before = Before::of(&tree);
        assert!(before.is_default());
        assert_eq!(before.kind, "pfifo_fast");
    }

    #[test]
    fn what_was_configured_is_made_again_from_the_root_down() {
        let tree = Tree {
            qdiscs: vec![
                node(0x10_0000, 0x1_0010, "pfifo"),
                node(0x1_0000, ROOT, "htb"),
            ],
            classes: vec![node(0x1_0010, 0x1_0001, "htb"), node(0x1_0001, ROOT, "htb")],
            filters: 0,
        };
        let before = Before::of(&tree);
        assert!(!before.is_default() && before.is_restorable(&tree));
        let order: Vec<(bool, u32, u32)> = before
            .steps()
            .iter()
            .map(|step| (step.class, step.handle, step.parent))
            .collect();
        let expected = [
            (false, 0x1_0000, ROOT),
            (true, 0x1_0001, 0x1_0000),
            (true, 0x1_0010, 0x1_0001),
            (false, 0x10_0000, 0x1_0010),
        ];
        assert_eq!(order, expected);
        let filtered = Tree { filters: 1, ..tree };
        assert!(!before.is_restorable(&filtered));
    }
}
