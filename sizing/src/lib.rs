//! CPU limits in, worker plan out: affinity, cpusets and cgroup quotas.
