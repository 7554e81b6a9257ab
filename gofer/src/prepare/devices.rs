//! Devices of the host that the sandbox's device proxies open: bound below `/dev` of the container's root.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::path::Path;

use gofer::contract::Generation;
use rustix::fs::Mode;

use super::mounts::{clone_tree, place};
use super::resolve::{Kind, resolve};
use crate::process::StartError;
use crate::process::args::Args;
use crate::process::spec::Spec;

/// PCI vendor and devices of the accelerators that the TPU proxy knows.
const TPU_VENDOR: &str = "0x1ae0";
const TPU_DEVICES: [&str; 5] = ["0x0027", "0x005e", "0x0056", "0x0062", "0x0063"];

/// Binds what the specification lists and a proxy lets through.
pub(super) fn bind(args: &Args, spec: &Spec, root: BorrowedFd<'_>) -> Result<(), StartError> {
    resolve(root, Path::new("/dev"))?.create(Kind::Directory, Mode::from_raw_mode(0o777))?;
    let proxies = Proxies::of(args, spec);
    for device in &spec.devices {
        if !proxies.admit(device) {
            continue;
        }
        let shown = device.display();
        let tree = clone_tree(device, false)
            .map_err(|cause| StartError::new(format_args!("bind the device {shown}"), cause))?;
        place(root, &tree, device)?;
        tracing::info!("bound the device {shown}");
    }
    Ok(())
}

/// Which kinds of devices are let through.
#[derive(Clone, Copy, Debug)]
struct Proxies {
    gpu: bool,
    tpu: bool,
    rdma: bool,
}

impl Proxies {
    fn of(args: &Args, spec: &Spec) -> Self {
        let newest = args.generation >= Generation::E26;
        let listed =
            |wanted: fn(&str) -> bool| newest && spec.devices.iter().filter_map(|path| path.to_str()).any(wanted);
        let annotated = |name: &str| is_true(&spec.annotations, name);
        let asked = newest && (args.devices.nvproxy_docker || has_gpu_hook(spec)) && wants_gpus(&spec.env);
        Self {
            gpu: args.devices.nvproxy
                || annotated("dev.gvisor.internal.nvproxy")
                || listed(|path| path == "/dev/nvidiactl")
                || asked,
            tpu: args.devices.tpuproxy || annotated("dev.gvisor.internal.tpuproxy") || listed(is_accelerator),
            rdma: newest && args.devices.rdmaproxy,
        }
    }

    fn admit(self, device: &Path) -> bool {
        let Some(path) = device.to_str() else { return false };
        (self.gpu && is_gpu(path))
            || (self.tpu && is_tpu(path))
            || (self.rdma && path.starts_with("/dev/infiniband/uverbs"))
    }
}

fn is_true(annotations: &BTreeMap<String, String>, name: &str) -> bool {
    annotations.get(name).is_some_and(|value| value == "true")
}

fn is_gpu(path: &str) -> bool {
    matches!(path, "/dev/nvidiactl" | "/dev/nvidia-uvm") || is_numbered(path, "/dev/nvidia")
}

fn is_accelerator(path: &str) -> bool {
    path.starts_with("/dev/accel") || (path.starts_with("/dev/vfio/") && path != "/dev/vfio/vfio")
}

fn is_numbered(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// What is numbered is an accelerator only if sysfs says so.
fn is_tpu(path: &str) -> bool {
    if is_numbered(path, "/dev/accel") {
        let number = path.trim_start_matches("/dev/accel");
        return is_tpu_in_sysfs(&format!("/sys/class/accel/accel{number}/device"));
    }
    if is_numbered(path, "/dev/vfio/") {
        let group = path.trim_start_matches("/dev/vfio/");
        let members = std::fs::read_dir(format!("/sys/kernel/iommu_groups/{group}/devices"));
        return members.is_ok_and(|all| all.flatten().any(|one| is_tpu_in_sysfs(&one.path().to_string_lossy())));
    }
    path.starts_with("/dev/vfio")
}

fn is_tpu_in_sysfs(directory: &str) -> bool {
    let read = |name: &str| std::fs::read_to_string(format!("{directory}/{name}")).unwrap_or_default();
    read("vendor").trim() == TPU_VENDOR && TPU_DEVICES.contains(&read("device").trim())
}

fn has_gpu_hook(spec: &Spec) -> bool {
    let cdi = |path: &Path| path.ends_with("nvidia-cdi-hook");
    spec.create_container.iter().any(|hook| cdi(&hook.path))
        || spec.prestart.iter().any(|hook| hook.path.ends_with("nvidia-container-runtime-hook"))
}

fn wants_gpus(env: &[String]) -> bool {
    let wanted = env.iter().rev().find_map(|one| one.strip_prefix("NVIDIA_VISIBLE_DEVICES="));
    wanted.is_some_and(|value| !value.is_empty() && value != "void")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_devices_of_a_proxy_that_is_on_are_let_through() {
        let gpu = Proxies { gpu: true, tpu: false, rdma: false };
        for (path, admitted) in [
            ("/dev/nvidiactl", true),
            ("/dev/nvidia-uvm", true),
            ("/dev/nvidia12", true),
            ("/dev/nvidia", false),
            ("/dev/nvidia1x", false),
            ("/dev/mem", false),
            ("/dev/vfio/vfio", false),
            ("/dev/infiniband/uverbs0", false),
        ] {
            assert_eq!(gpu.admit(Path::new(path)), admitted, "{path}");
        }
        let rdma = Proxies { gpu: false, tpu: false, rdma: true };
        assert!(rdma.admit(Path::new("/dev/infiniband/uverbs0")) && !rdma.admit(Path::new("/dev/nvidiactl")));
    }

    #[test]
    fn a_numbered_device_that_sysfs_does_not_know_is_no_accelerator() {
        assert!(!is_tpu("/dev/accel99999") && !is_tpu("/dev/vfio/99999"));
        assert!(is_tpu("/dev/vfio/vfio"));
    }

    #[test]
    fn void_is_a_request_for_no_gpu() {
        let env = |value: &str| vec![format!("NVIDIA_VISIBLE_DEVICES={value}")];
        assert!(wants_gpus(&env("all")));
        assert!(!wants_gpus(&env("void")) && !wants_gpus(&env("")) && !wants_gpus(&[]));
    }
}
