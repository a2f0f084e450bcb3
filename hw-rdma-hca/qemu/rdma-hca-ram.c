/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The RAM that a card may reach by DMA. See rdma-hca-ram.h.
 */
#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "rdma-hca-ram.h"
#include "rdma-hca.h"

/* Of this card or another one: a BAR, as registers are. */
static bool is_device_memory(MemoryRegion *mr)
{
    return object_dynamic_cast(memory_region_owner(mr), TYPE_RDMA_HCA);
}

/* A vIOMMU that is made after the card comes between when the machine is done. */
static void warn_of_order(const RdmaHcaRam *ram, MemoryRegion *mr)
{
    if (memory_region_is_iommu(mr) && !ram->translated) {
        warn_report_once("rdma-hca: the card cannot reach memory: the vIOMMU "
                         "has to come before it on the command line");
    }
}

static bool section_is_memory(const MemoryRegionSection *section)
{
    MemoryRegion *mr = section->mr;

    return memory_region_is_ram(mr) && !memory_region_is_ram_device(mr) &&
           !memory_region_is_protected(mr) && !is_device_memory(mr);
}

static void ram_listener_begin(MemoryListener *listener)
{
    RdmaHcaRam *ram = container_of(listener, RdmaHcaRam, listener);

    g_array_set_size(ram->sections, 0);
}

static void ram_listener_add(MemoryListener *listener,
                             MemoryRegionSection *section)
{
    RdmaHcaRam *ram = container_of(listener, RdmaHcaRam, listener);
    RdmaHcaRamSection new = {
        .addr = section->offset_within_address_space,
        .mr = section->mr,
        .mr_offset = section->offset_within_region,
        .writable = !section->readonly && !memory_region_is_rom(section->mr),
    };

    warn_of_order(ram, section->mr);
    if (!section_is_memory(section)) {
        return;
    }
    new.size = int128_get64(section->size);
    new.host = (uint8_t *)memory_region_get_ram_ptr(new.mr) + new.mr_offset;
    g_array_append_val(ram->sections, new);
}

static int compare_address(const void *a, const void *b)
{
    const RdmaHcaRamSection *x = a, *y = b;

    return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static bool section_equal(const RdmaHcaRamSection *a,
                          const RdmaHcaRamSection *b)
{
    return a->addr == b->addr && a->size == b->size && a->host == b->host &&
           a->mr == b->mr && a->mr_offset == b->mr_offset &&
           a->writable == b->writable;
}

static bool map_holds(const RdmaHcaRamMap *map, const GArray *sections)
{
    if (map->count != sections->len) {
        return false;
    }
    for (unsigned i = 0; i < map->count; i++) {
        if (!section_equal(&map->section[i],
                           &g_array_index(sections, RdmaHcaRamSection, i))) {
            return false;
        }
    }
    return true;
}

static RdmaHcaRamMap *map_new(const GArray *sections)
{
    RdmaHcaRamMap *map = g_malloc0(sizeof(*map) +
                                   sections->len * sizeof(map->section[0]));

    map->count = sections->len;
    for (unsigned i = 0; i < map->count; i++) {
        map->section[i] = g_array_index(sections, RdmaHcaRamSection, i);
        memory_region_ref(map->section[i].mr);
    }
    return map;
}

static void map_free(RdmaHcaRamMap *map)
{
    for (unsigned i = 0; i < map->count; i++) {
        memory_region_unref(map->section[i].mr);
    }
    g_free(map);
}

static void ram_listener_commit(MemoryListener *listener)
{
    RdmaHcaRam *ram = container_of(listener, RdmaHcaRam, listener);
    RdmaHcaRamMap *old = ram->map;

    g_array_sort(ram->sections, compare_address);
    if (map_holds(old, ram->sections)) {
        return;
    }
    qatomic_rcu_set(&ram->map, map_new(ram->sections));
    if (ram->changed) {
        ram->changed(ram->opaque);
    }
    call_rcu(old, map_free, rcu);
}

void rdma_hca_ram_init(RdmaHcaRam *ram, AddressSpace *as, const char *name,
                       bool translated, void (*changed)(void *opaque),
                       void *opaque)
{
    ram->sections = g_array_new(false, false, sizeof(RdmaHcaRamSection));
    ram->map = map_new(ram->sections);
    ram->translated = translated;
    ram->changed = changed;
    ram->opaque = opaque;
    ram->listener = (MemoryListener) {
        .begin = ram_listener_begin,
        .commit = ram_listener_commit,
        .region_add = ram_listener_add,
        .region_nop = ram_listener_add,
        .name = name,
    };
    memory_listener_register(&ram->listener, as);
}

void rdma_hca_ram_cleanup(RdmaHcaRam *ram)
{
    memory_listener_unregister(&ram->listener);
    call_rcu(ram->map, map_free, rcu);
    ram->map = NULL;
    g_array_free(ram->sections, true);
    ram->sections = NULL;
}

static bool section_contains(const RdmaHcaRamSection *section, hwaddr addr)
{
    return addr >= section->addr && addr - section->addr < section->size;
}

const RdmaHcaRamSection *rdma_hca_ram_find(const RdmaHcaRamMap *map,
                                           hwaddr addr, unsigned *hint)
{
    unsigned low = 0, high = map->count;

    if (*hint < map->count && section_contains(&map->section[*hint], addr)) {
        return &map->section[*hint];
    }
    while (low < high) {
        unsigned mid = low + (high - low) / 2;

        if (section_contains(&map->section[mid], addr)) {
            *hint = mid;
            return &map->section[mid];
        }
        if (addr < map->section[mid].addr) {
            high = mid;
        } else {
            low = mid + 1;
        }
    }
    return NULL;
}

void rdma_hca_ram_written(AddressSpace *as, const RdmaHcaRamSection *section,
                          hwaddr addr, uint64_t len)
{
    hwaddr offset = addr - section->addr;

    if (!memory_region_get_dirty_log_mask(section->mr)) {
        return;
    }
    /* The end of a mapping for writing does all that is due, and unrefs. */
    memory_region_ref(section->mr);
    address_space_unmap(as, section->host + offset, len, true, len);
}
