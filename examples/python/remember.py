"""Embeds the component in Python: remember.py COMPONENT STORY [NOW_MS].

What it imports is all that a host has to give: a bucket that compares and swaps, a clock, randomness. Put your own store
in place of the dictionary: it has to read what was written, and `swap` has to be one step.
"""

import os
import sys
import time

from wasmtime import Config, Engine, Store
from wasmtime.component import Component, Linker, Record, ResourceHost, ResourceType, Variant

BUCKET, SEEN = 1, 2


class Host:
    """What the component may reach. A result is its payload, where the type alone tells success from failure."""

    def __init__(self, now_ms=None):
        self.values = {}
        self.now_ms = now_ms
        self.things = {}
        self.count = 0

    def keep(self, thing, kind):
        """A handle on something of ours, for the component."""
        self.count += 1
        self.things[self.count] = thing
        return ResourceHost.own(self.count, kind)

    def thing(self, store, handle):
        return self.things[handle.to_host(store).rep]

    def key(self, store, bucket, key):
        return f"{self.thing(store, bucket)}/{key}"

    # wasi:keyvalue/store
    def open(self, store, name):
        return self.keep(name, BUCKET)

    def get(self, store, bucket, key):
        return self.values.get(self.key(store, bucket, key))

    def set(self, store, bucket, key, value):
        self.values[self.key(store, bucket, key)] = value

    def delete(self, store, bucket, key):
        self.values.pop(self.key(store, bucket, key), None)

    def list_keys(self, store, bucket, cursor):
        own = self.key(store, bucket, "")
        keys = [key.removeprefix(own) for key in self.values if key.startswith(own)]
        return record(keys=keys, cursor=None)

    # wasi:keyvalue/atomics
    def new_cas(self, store, bucket, key):
        key = self.key(store, bucket, key)
        return self.keep((key, self.values.get(key)), SEEN)

    def current(self, store, seen):
        return self.thing(store, seen)[1]

    def swap(self, store, seen, value):
        key, old = self.thing(store, seen)
        now = self.values.get(key)
        if now == old:
            self.values[key] = value
            return None
        return self.keep((key, now), SEEN)

    # wasi:clocks/wall-clock
    def now(self, store):
        now_ms = time.time_ns() // 1_000_000 if self.now_ms is None else self.now_ms
        return record(seconds=now_ms // 1000, nanoseconds=now_ms % 1000 * 1_000_000)

    def link(self, linker):
        """Gives the component what it imports; what it never calls it does not import."""
        drop = lambda store, rep: self.things.pop(rep, None)
        with linker.root() as root:
            with root.add_instance("wasi:keyvalue/store@0.2.0-draft2") as store:
                store.add_resource("bucket", ResourceType.host(BUCKET), drop)
                store.add_func("open", self.open)
                store.add_func("[method]bucket.get", self.get)
                store.add_func("[method]bucket.set", self.set)
                store.add_func("[method]bucket.delete", self.delete)
                store.add_func("[method]bucket.list-keys", self.list_keys)
            with root.add_instance("wasi:keyvalue/atomics@0.2.0-draft2") as atomics:
                atomics.add_resource("cas", ResourceType.host(SEEN), drop)
                atomics.add_func("[static]cas.new", self.new_cas)
                atomics.add_func("[method]cas.current", self.current)
                atomics.add_func("swap", self.swap)
            with root.add_instance("wasi:clocks/wall-clock@0.2.0") as clock:
                clock.add_func("now", self.now)
            with root.add_instance("wasi:random/random@0.2.0") as random:
                random.add_func("get-random-bytes", lambda store, length: os.urandom(length))


def record(**fields):
    made = Record()
    for name, value in fields.items():
        setattr(made, name.replace("_", "-"), value)
    return made


class Memory:
    """An open memory, by the component's own interface."""

    INTERFACE = "foremind:memory/memories@0.1.0"

    def __init__(self, component, host, bucket, key):
        engine = Engine(Config())
        linker = Linker(engine)
        host.link(linker)
        self.store = Store(engine)
        self.instance = linker.instantiate(self.store, Component.from_file(engine, component))
        options = record(key=key, model=None, utc_offset_min=0, policy=None)
        self.memory = self.call("[static]memory.open", bucket, options)

    def call(self, name, *arguments):
        interface = self.instance.get_export_index(self.store, self.INTERFACE)
        index = self.instance.get_export_index(self.store, name, interface)
        function = self.instance.get_func(self.store, index)
        answer = function(self.store, *arguments)
        function.post_return(self.store)
        # What is no error comes as it is; an error has a code and a sentence for a developer.
        if isinstance(answer, Variant):
            raise RuntimeError(f"{answer.tag}: {answer.payload}")
        return answer

    def remember(self, scope, text):
        return self.call("[method]memory.remember", self.memory, scope, text)

    def recall(self, scope, query):
        return self.call("[method]memory.recall", self.memory, scope, query, None)


def main(component, story, now_ms=None):
    host = Host(None if now_ms is None else int(now_ms))
    # 32 bytes that the host keeps, apart from the store.
    memory = Memory(component, host, "ada", bytes([7] * 32))
    ada = record(user="ada", project=None, thread=None, agent=None)
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    with open(story, encoding="utf-8") as lines:
        for line in lines.read().splitlines():
            if host.now_ms is not None:
                host.now_ms += 1000
            verb, _, text = line.partition(" ")
            if verb == "tell":
                memory.remember(ada, text)
            elif verb == "ask":
                print(f"PROMPT: {text}\n{memory.recall(ada, text).text}")


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: remember.py COMPONENT STORY [NOW_MS]")
    main(*sys.argv[1:])
