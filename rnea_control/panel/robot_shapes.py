"""Shapes of a robot's links, from its URDF, for drawing."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import trimesh

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import RobotModelError
from rnea_control.model.robot_description import description_from_urdf
from rnea_control.model.urdf_text import parse_xml
from rnea_control.ros.mesh_files import mesh_file

BAR = 0.02  # radius of a bar between two joints [m]
SHORTEST_BAR = 1e-3  # [m]
SECTIONS = 24  # faces around a cylinder
MOST_VERTICES = 2_000_000  # of a mesh; larger ones would stall the browser


@dataclass(frozen=True)
class LinkShape:
    """Triangles of a link in its frame."""

    vertices: FloatArray  # shape (n, 3), [m]
    faces: FloatArray  # indices, shape (m, 3)


def link_shapes(
    urdf: str, tags: tuple[str, ...] = ("visual", "collision")
) -> tuple[dict[str, LinkShape], str]:
    """Shapes of the links, and what could not be drawn as the URDF says, in words; empty if all
    could.

    Args:
        urdf: text of the URDF.
        tags: elements of a link, the preferred one first. Bars to the child joints are drawn for
            links of which none can be drawn.
    """
    root = parse_xml(urdf.encode())
    bars: dict[str, list[trimesh.Trimesh]] = {}
    for joint in description_from_urdf(urdf.encode(), "robot_description").joints:
        if np.linalg.norm(joint.translation) > SHORTEST_BAR:
            segment = np.array([np.zeros(3), joint.translation])
            bars.setdefault(joint.parent, []).append(
                trimesh.creation.cylinder(BAR, segment=segment, sections=SECTIONS)
            )
    shapes: dict[str, LinkShape] = {}
    replaced: dict[str, list[str]] = {}  # links by what is drawn instead
    for link in root.iter("link"):
        name, drawn = link.get("name", ""), None
        wanted = [tag for tag in tags if link.find(tag) is not None]
        for tag in wanted:
            if (drawn := _merged(link, tag)) is not None:
                if tag != wanted[0]:
                    replaced.setdefault(f"their {tag} shapes", []).append(name)
                break
        if drawn is None and name in bars:
            drawn = trimesh.util.concatenate(bars[name])
            if wanted:
                replaced.setdefault("bars between the joints", []).append(name)
        if drawn is not None:
            shapes[name] = LinkShape(np.asarray(drawn.vertices), np.asarray(drawn.faces))
    words = [f"{what} of {', '.join(links)}" for what, links in replaced.items()]
    if not words:
        return shapes, ""
    return shapes, (
        f"Drawn instead of meshes that were not found or cannot be read: {'; '.join(words)}. "
        "Meshes of other packages are found where their ROS package is sourced; .dae files need "
        "pycollada."
    )


def _merged(link: ET.Element, tag: str) -> trimesh.Trimesh | None:
    """Visuals or collisions of a link as a single mesh; None if one of them cannot be drawn."""
    try:
        meshes = list(_of_link(link, tag))
    except Exception:  # readers of mesh formats raise anything
        return None
    if not meshes or sum(len(mesh.vertices) for mesh in meshes) > MOST_VERTICES:
        return None
    merged = trimesh.util.concatenate(meshes)
    return merged if np.isfinite(merged.vertices).all() else None


def _of_link(link: ET.Element, tag: str) -> Iterator[trimesh.Trimesh]:
    """Meshes of a link's visuals or collisions, in the frame of the link.

    Raises:
        RobotModelError: a mesh is not found.
        Exception: a file or a number cannot be read.
    """
    for element in link.findall(tag):
        geometry = element.find("geometry")
        if geometry is None or not len(geometry):
            continue
        mesh = _shape(geometry[0])
        origin = element.find("origin")
        place = {} if origin is None else origin.attrib
        pose = trimesh.transformations.euler_matrix(*_numbers(place.get("rpy", "0 0 0")), "sxyz")
        pose[:3, 3] = _numbers(place.get("xyz", "0 0 0"))
        mesh.apply_transform(pose)
        yield mesh


def _shape(shape: ET.Element) -> trimesh.Trimesh:
    """Mesh of a geometry."""
    if shape.tag == "box":
        return trimesh.creation.box(_numbers(shape.get("size", "")))
    if shape.tag == "sphere":
        return trimesh.creation.icosphere(2, float(shape.get("radius", "")))
    if shape.tag in ("cylinder", "capsule"):
        radius, length = float(shape.get("radius", "")), float(shape.get("length", ""))
        made = getattr(trimesh.creation, shape.tag)
        mesh = made(radius=radius, height=length)
        if shape.tag == "capsule":
            mesh.apply_translation([0.0, 0.0, -mesh.bounds[:, 2].mean()])
        return mesh
    path = mesh_file(shape.get("filename", ""))
    if path is None:
        raise RobotModelError(f"{shape.get('filename')} is not found")
    mesh = trimesh.load(path, force="mesh")
    mesh.visual = trimesh.visual.ColorVisuals()
    mesh.merge_vertices(merge_norm=True, merge_tex=True)
    mesh.apply_scale(_numbers(shape.get("scale", "1 1 1")))
    return mesh


def _numbers(text: str) -> list[float]:
    return [float(word) for word in text.split()]
