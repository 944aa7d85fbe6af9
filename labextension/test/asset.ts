/** What a style or a picture is to a unit test; JupyterLab's icons need an element with a namespace. */
export default '<svg xmlns="http://www.w3.org/2000/svg"></svg>';
