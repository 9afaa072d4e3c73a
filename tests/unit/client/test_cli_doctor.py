"""cured-client doctor: each thing it looks at, right and wrong, and the fix it names. What this machine lacks is made up in a folder
(CURED_DOCTOR_ROOT) or left to where it can be had."""
import contextlib
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import time
import unittest

from cli_daemon import BIN, CLIENT, DAEMON, ENVIRONMENT, HANG_S, CliTest, for_others, main

FAKE_GPU = os.path.join(os.path.dirname(os.path.abspath(BIN)), "tests", "cured-fake-gpu")


class Doctor(CliTest):
    def doctor(self, *arguments, code=0, connect=None, root=None, before=None, prefix=(), program=CLIENT, **env):
        """{check: finding} of one run."""
        environment = dict(ENVIRONMENT, **env)
        if root:
            environment["CURED_DOCTOR_ROOT"] = root
        run = subprocess.run([*prefix, program, "doctor", "--json", "--connect", connect or self.unix, *arguments],
                             stdin=subprocess.DEVNULL, capture_output=True, timeout=HANG_S, env=environment, preexec_fn=before)
        self.assertEqual(code, run.returncode, run)
        findings = json.loads(run.stdout)
        for f in findings:
            self.assertIn(f["level"], ("ok", "note", "warn", "fail"))
            if f["level"] in ("warn", "fail"):
                self.assertIn("fix", f, f)
        self.assertEqual(len(findings), len({f["check"] for f in findings}))
        self.assertEqual(b"checks failed" in run.stderr, code != 0)
        return {f["check"]: f for f in findings}

    def finding(self, findings, check, level, detail, fix=""):
        f = findings[check]
        self.assertEqual(level, f["level"], f)
        self.assertIn(detail, f["detail"])
        self.assertIn(fix, f.get("fix", ""))

    def made_up(self, files):
        root = os.path.join(self.dir, "root")
        shutil.rmtree(root, ignore_errors=True)
        for path, text in files.items():
            path = root + path
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if text is None:
                os.makedirs(path, exist_ok=True)
            else:
                with open(path, "w") as f:
                    f.write(text)
        return root

    @contextlib.contextmanager
    def other(self, program, before=None):
        """The address of a daemon of its own; None: it does not start."""
        where = "unix:" + os.path.join(self.dir, "other")
        try:
            daemon = subprocess.Popen([program, "--listen", where], stderr=subprocess.DEVNULL, preexec_fn=before,
                                      env=dict(ENVIRONMENT, CURED_TEST_GPU="devices=1"))
        except subprocess.SubprocessError:
            yield None
            return
        try:
            for _ in range(HANG_S * 20):
                if subprocess.run([CLIENT, "ping", "--connect", where], capture_output=True, env=ENVIRONMENT).returncode == 0:
                    break
                time.sleep(0.02)
            yield where
        finally:
            daemon.send_signal(signal.SIGTERM)
            self.assertEqual(0, daemon.wait(HANG_S))

    def with_gpu(self, before=None):
        if not os.path.exists(FAKE_GPU):
            self.skipTest("there is no daemon with a stand-in GPU here: " + FAKE_GPU)
        return self.other(FAKE_GPU, before)

    def test_all_is_well(self):
        found = self.doctor()
        self.finding(found, "socket", "ok", "cured/")
        self.finding(found, "daemon", "note" if "backend cpu" in found["daemon"]["detail"] else "ok", "version")
        self.finding(found, "sharing", "ok", "sealed memfd")
        for check in ("memlock", "pid_namespace", "ipc_namespace", "dev_shm", "driver"):
            self.assertIn(check, found)
        text = self.client("doctor").out
        for check in found:
            self.assertIn(check, text)

    def test_over_tcp(self):
        found = self.doctor(connect=self.tcp)
        self.finding(found, "socket", "ok", "tcp:")
        self.finding(found, "sharing", "note", "TCP", "Unix socket")
        self.assertNotIn("pid_namespace", found)

    def test_no_daemon(self):
        self.finding(self.doctor(connect="unix:/nowhere/s", code=69), "socket", "fail", "/nowhere/s", "systemctl start cured")
        self.finding(self.doctor(connect=self.raw, code=69), "socket", "fail", "no socket", "--connect")
        dead = os.path.join(self.dir, "dead")
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(dead)
        self.finding(self.doctor(connect=dead, code=69), "socket", "fail", "dead", "start cured")
        self.finding(self.doctor(connect="tcp:127.0.0.1:1", code=69), "socket", "fail", "", "--listen")

    def test_a_daemon_that_does_not_answer(self):
        silent = os.path.join(self.dir, "silent")
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(silent)
            s.listen(1)
            found = self.doctor("--timeout", "200ms", connect=silent, code=69)
            self.finding(found, "socket", "fail", "silent", "does not answer")

    def test_permissions(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to be somebody else")

        def be_nobody():
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        nobody = {"before": be_nobody, "program": for_others(CLIENT)}
        self.finding(self.doctor(code=69, **nobody), "socket", "fail", "Permission denied", "chmod")
        os.chmod(self.dir, 0o755)
        try:
            found = self.doctor(code=69, **nobody)
            self.finding(found, "socket", "fail", "may not connect", "--socket-mode 0666")
            os.chmod(os.path.join(self.dir, "s"), 0o666)
            found = self.doctor(**nobody)
            self.finding(found, "sharing", "ok", "memfd")
            self.finding(found, "pid_namespace", "note", "cannot be seen")
        finally:
            os.chmod(os.path.join(self.dir, "s"), 0o660)
            os.chmod(self.dir, 0o700)

    def test_memlock(self):
        for limit, level, words, fix in ((65536, "warn", "64 KiB", "memlock=-1"), (resource.RLIM_INFINITY, "ok", "as much", "")):
            def limited():
                resource.setrlimit(resource.RLIMIT_MEMLOCK, (limit, limit))
            with self.with_gpu(limited) as where:
                if where:
                    self.finding(self.doctor(connect=where), "memlock", level, words, fix)
                else:  # this user may not raise the limit
                    self.assertEqual(limit, resource.RLIM_INFINITY)

    def test_namespaces(self):
        self.finding(self.doctor(), "ipc_namespace", "ok", "this one")
        if os.geteuid() != 0 or subprocess.run(["unshare", "-i", "true"], capture_output=True).returncode != 0:
            self.skipTest("needs root and unshare")
        with self.with_gpu() as where:
            found = self.doctor(prefix=["unshare", "-i"], connect=where)
            self.finding(found, "ipc_namespace", "warn", "another", "--ipc=host")
            self.finding(found, "pid_namespace", "ok", "this one")
            self.apart(where, "warn", "--pid=host")

    def apart(self, where, level, fix=""):
        # --mount-proc would change the propagation of /, which is no mount point in a plain chroot.
        proc = 'mount --make-private /proc && mount -t proc proc /proc && exec "$@"'
        found = self.doctor(prefix=["unshare", "-m", "-p", "-f", "--propagation", "unchanged", "sh", "-c", proc, "sh"], connect=where)
        self.finding(found, "pid_namespace", level, "another", fix)

    def test_without_a_gpu_device_memory_is_no_fault(self):
        def limited():
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))
        driver = {"/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  999.1\n", "/dev/shm": None}
        with self.other(DAEMON, limited) as where:
            found = self.doctor(connect=where, root=self.made_up(driver), CUDA_VISIBLE_DEVICES="")
            if "backend cpu" not in found["daemon"]["detail"]:
                self.skipTest("the daemon has a GPU here")
            for check in ("memlock", "gpus", "gpu_devices", "visible"):
                self.finding(found, check, "note", "")
            self.assertNotIn("gpu_switch", found)
            if os.geteuid() == 0 and subprocess.run(["unshare", "-i", "true"], capture_output=True).returncode == 0:
                self.finding(self.doctor(prefix=["unshare", "-i"], connect=where), "ipc_namespace", "note", "no GPU")
                self.apart(where, "note")

    def test_shared_memory(self):
        root = self.made_up({"/dev/other": ""})
        self.finding(self.doctor(root=root), "dev_shm", "warn", "No such file", "mount -t tmpfs")
        found = self.doctor(root=self.made_up({"/dev/shm": None}))["dev_shm"]
        self.assertIn(found["level"], ("ok", "warn"))  # as the folder is a tmpfs or not
        if os.geteuid() == 0:
            shm = os.path.join(self.made_up({"/dev/shm": None}), "dev", "shm")
            if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", shm], capture_output=True).returncode == 0:
                try:
                    self.finding(self.doctor(root=os.path.join(self.dir, "root")), "dev_shm", "warn", "1 MiB", "--shm-size")
                finally:
                    subprocess.run(["umount", shm], check=True)

    def test_gpus(self):
        with self.with_gpu() as where:
            self.gpus(where)

    def gpus(self, where):
        found = self.doctor(root=self.made_up({"/dev/shm": None}), connect=where)
        self.finding(found, "gpu_switch", "note", "350 us", "CUDA MPS")
        self.finding(found, "driver", "note", "no NVIDIA driver", "--gpus all")
        self.assertNotIn("gpus", found)
        driver = {"/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  999.1\nGCC version: 1\n"}
        found = self.doctor(root=self.made_up(driver), connect=where)
        self.finding(found, "driver", "ok", "Module  999.1")
        self.finding(found, "gpus", "warn", "no GPU", "dmesg")
        self.finding(found, "gpu_devices", "warn", "/dev/nvidiactl", "--gpus all")
        for number in range(2):
            driver["/proc/driver/nvidia/gpus/0000:0%d:00.0/information" % number] = (
                "Model: \t\t Made up\nGPU UUID: \t GPU-%d2345678-aaaa-bbbb-cccc-0123456789ab\n" % number)
        driver["/dev/nvidiactl"] = driver["/dev/nvidia-uvm"] = ""
        root = self.made_up(driver)
        found = self.doctor(root=root, connect=where)
        for number in range(2):
            self.finding(found, "gpus", "ok", "GPU-%d2345678-aaaa-bbbb-cccc-0123456789ab" % number)
        self.finding(found, "gpu_devices", "ok", "/dev/nvidia-uvm")
        self.assertNotIn("visible", found)
        self.finding(self.doctor(root=root, connect=where, CUDA_VISIBLE_DEVICES="1"), "visible", "note", "=1", "UUID")


if __name__ == "__main__":
    main()
